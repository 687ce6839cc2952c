"""The log of security events: who logged in, what failed, and what was changed. It is written at every log level."""

import logging
from typing import Final

_log = logging.getLogger("holdfast.security")
_MAX_VALUE: Final = 500


def record(event: str, *, level: int = logging.INFO, **fields: str) -> None:
    """One line: the event and its fields, of which none may be a secret. Long values are shortened."""
    fields = {name: value if len(value) <= _MAX_VALUE else f"{value[:_MAX_VALUE]}…" for name, value in fields.items()}
    line = " ".join([event, *(f"{name}={value!r}" for name, value in fields.items())])
    _log.log(level, "%s", line, extra={"fields": {"event": event, **fields}})
