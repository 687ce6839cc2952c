"""Logging: one line per event, as text or JSON. The level and the form are settings (`log_level`, `log_format` of
`config`); who logged in and what was changed is logged by `server.security_log`. Messages never contain what people or
models write; a traceback may. Nothing in a message can begin a new line or control a terminal."""

import json
import logging
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

_IDS: Final = ("run", "session")  # Fields that every line shows
ALWAYS_LOGGED: Final = "holdfast.security"
"""The logger whose events are written at every level."""


class JsonLineFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        text = json.dumps(line, ensure_ascii=False, default=str)
        return text if text.isprintable() else json.dumps(line, default=str)


class TextLineFormatter(logging.Formatter):
    """Escapes what is not printable, and indents tracebacks: a line that begins with a time is an event."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  overridden
        fields = getattr(record, "fields", {})
        ids = [f"{name}={fields[name]}" for name in _IDS if name in fields and str(fields[name]) not in record.message]
        return _escape(" ".join([super().formatMessage(record), *ids]))

    def formatException(self, ei: Any) -> str:  # noqa: N802  overridden
        return _indent(super().formatException(ei).splitlines())

    def formatStack(self, stack_info: str) -> str:  # noqa: N802  overridden
        return _indent(stack_info.splitlines())


def _escape(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _indent(lines: Sequence[str]) -> str:
    return "\n".join(f"  {_escape(line)}" for line in lines)


def configure(level: str, log_format: str) -> None:
    """Sends the logs of the whole process to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLineFormatter() if log_format == "json" else TextLineFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("uvicorn").setLevel(max(logging.getLevelName(level.upper()), logging.WARNING))
    logging.getLogger(ALWAYS_LOGGED).setLevel(logging.INFO)
