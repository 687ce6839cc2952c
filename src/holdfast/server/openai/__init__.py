"""The OpenAI-compatible API: the same runs in OpenAI's wire formats, below `PREFIX`."""

from typing import Final

PREFIX: Final = "/v1/"
