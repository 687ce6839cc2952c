"""Secrets of programs and servers that were added on the settings page: sets of values in the keyring. Where the
keyring is: `storage.key_file`, in a cluster `storage.postgres.keyring`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from anyio import to_thread

from holdfast.app.models import set_provider_key
from holdfast.core.errors import InvalidInputError
from holdfast.ports.keyring import KeyringStore


@dataclass(frozen=True, slots=True)
class StoredSecrets:
    keys: KeyringStore
    prefix: str  # Before the owner's name, in the keyring

    def read(self, name: str) -> dict[str, str]:
        found: dict[str, str] = json.loads(self.keys.read().provider_keys.get(self.prefix + name, "{}"))
        return found

    def merge(self, field: str, name: str, values: Mapping[str, str | None]) -> Mapping[str, str]:
        """The values, with the stored one for each null."""
        stored = self.read(name)
        lost = next((key for key, value in values.items() if value is None and key not in stored), None)
        if lost is not None:
            raise InvalidInputError(f"{field}.{lost}", "has no stored value for this command or URL; enter it")
        return {key: stored[key] if value is None else value for key, value in values.items()}

    async def write(self, name: str, values: Mapping[str, str]) -> None:
        text = json.dumps(dict(values)) if values else None
        await to_thread.run_sync(set_provider_key, self.keys, self.prefix + name, text)
