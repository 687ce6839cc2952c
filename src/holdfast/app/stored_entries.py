"""Settings that hold entries by name, such as agents and MCP servers that were added on the settings page. Pure: for
`Preferences.update`, which reads and writes in one transaction."""

from holdfast.core.errors import NotFoundError, QuotaExceededError
from holdfast.core.parts import Json


def with_entry(stored: Json, name: str, entry: Json, limit: int, kind: str) -> Json:
    """With one entry more, or changed. Raises QuotaExceededError; `kind` is what the entries are."""
    entries = stored if isinstance(stored, dict) else {}
    if name not in entries and len(entries) >= limit:
        raise QuotaExceededError(kind, limit, "Remove one that is no longer used.")
    return {**entries, name: entry}


def without_entry(stored: Json, name: str, kind: str) -> Json:
    """Raises NotFoundError; `kind` is what the entry is."""
    if not isinstance(stored, dict) or name not in stored:
        raise NotFoundError(kind, name)
    return {other: entry for other, entry in stored.items() if other != name}
