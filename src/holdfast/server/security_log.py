"""The log of security events: who logged in, what failed, and what was changed. It is written at every log level."""

import logging
from typing import Final, Literal

_log = logging.getLogger("holdfast.security")
_MAX_VALUE: Final = 500
SecurityEvent = Literal[
    "logged in",
    "logged out",
    "logged out everywhere",
    "wrong password",
    "password changed",
    "login link created",
    "token created",
    "token revoked",
    "provider key stored",
    "provider key removed",
    "model provider stored",
    "model provider removed",
    "model download started",
    "agent stored",
    "agent removed",
    "MCP server stored",
    "MCP server removed",
    "MCP server signed in",
    "MCP server signed out",
    "tool rules changed",
    "tool always allowed",
    "grant revoked",
    "chat shared",
    "share revoked",
    "backup started",
    "file saved",
    "file created",
    "file moved",
    "file uploaded",
    "file deleted",
    "file restored",
    "changes restored",
    "trash erased",
]


def record(event: SecurityEvent, *, level: int = logging.INFO, **fields: str) -> None:
    """One line: the event and its fields, of which none may be a secret. Long values are shortened."""
    fields = {name: value if len(value) <= _MAX_VALUE else f"{value[:_MAX_VALUE]}…" for name, value in fields.items()}
    line = " ".join([event, *(f"{name}={value!r}" for name, value in fields.items())])
    _log.log(level, "%s", line, extra={"fields": {"event": event, **fields}})
