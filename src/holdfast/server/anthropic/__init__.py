"""The Anthropic-compatible API: `POST /v1/messages`, as another wire format of the same runs."""

from typing import Final

PREFIX: Final = "/v1/messages"
