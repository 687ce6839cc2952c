"""The log of security events: who logged in, what failed, and what was changed. It is written at every log level."""

import logging

_log = logging.getLogger("holdfast.security")


def record(event: str, *, level: int = logging.INFO, **fields: str) -> None:
    """One line: the event and its fields, of which none may be a secret."""
    line = " ".join([event, *(f"{name}={value!r}" for name, value in fields.items())])
    _log.log(level, "%s", line, extra={"fields": {"event": event, **fields}})
