"""The server's key: made once, kept with the other secrets, and the same on all nodes."""

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from holdfast.push.vapid import NAME, VapidKeys, authorization
from holdfast.storage.key_file import KeyFile
from tests.push.service import verify_authorization

pytestmark = pytest.mark.anyio


async def test_the_key_is_made_at_the_first_use_and_kept(tmp_path: Path) -> None:
    """In the keyring, which nobody else can read; other keys stay."""
    keys = KeyFile(tmp_path)
    keys.change(lambda ring: replace(ring, provider_keys={"openai": "sk"}))
    first = await VapidKeys(keys).public_key()
    assert await VapidKeys(KeyFile(tmp_path)).public_key() == first
    stored = json.loads((tmp_path / "keys.json").read_text())["provider_keys"]
    assert (set(stored), stored["openai"]) == ({"openai", NAME}, "sk")
    assert stat.S_IMODE((tmp_path / "keys.json").stat().st_mode) == 0o600
    assert stored[NAME] not in repr(keys.read())


def test_nodes_that_start_together_agree_on_one_key(tmp_path: Path) -> None:
    """Each is its own process: the first one that stores a key decides."""

    def read(_: int) -> str:
        return anyio.run(VapidKeys(KeyFile(tmp_path)).public_key)

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(read, range(8)))) == 1


async def test_a_push_service_can_verify_who_sends(tmp_path: Path) -> None:
    """RFC 8292: the token names the push service, when it ends and whom to ask, and is signed with the key."""
    keys = VapidKeys(KeyFile(tmp_path))
    header = authorization(await keys.private_key(), "https://push.example", "mailto:a@example.com", 1000.0)
    key, claims = verify_authorization(header, "https://push.example")
    assert key == await keys.public_key()
    assert claims == {"aud": "https://push.example", "exp": 1000 + 12 * 3600, "sub": "mailto:a@example.com"}
