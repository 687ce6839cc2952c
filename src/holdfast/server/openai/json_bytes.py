"""Writes JSON directly as bytes. Text is copied from the journal still escaped: a text that was encoded once is copied
between two quotes, because decoding and encoding it again would cost more than all else that is done per token."""

import json
from json.encoder import encode_basestring

from holdfast.core.parts import Json


def dump(value: Json) -> bytes:
    return dump_text(value).encode("utf-8", "replace")


def dump_text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def escape(text: str) -> bytes:
    """The text as a JSON string has it, without the quotes around it."""
    return encode_basestring(text)[1:-1].encode("utf-8", "replace")


def as_text(value: Json) -> str:
    """Arguments and results of tools, which OpenAI's formats have as text: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else dump_text(value)
