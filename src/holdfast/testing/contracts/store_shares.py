"""Share links."""

from dataclasses import replace
from typing import Any

import anyio
import pytest

from holdfast.core.errors import StorageError
from holdfast.core.ids import LOCAL, FileId, OwnerId, SessionId, ShareId
from holdfast.core.shares import Share
from holdfast.ports.store import Store, Tx
from holdfast.testing.contracts import samples as s


def _share(name: str = "1", sid: str = s.SID, **changes: Any) -> Share:
    base = Share(
        ShareId(f"share_{name}"),
        LOCAL,
        SessionId(sid),
        f"digest {name}",
        "text",
        "",
        with_reasoning=False,
        with_tools=False,
        with_files=False,
        file_id=FileId(f"file_{name}"),
        size=3,
        created_at=1.0,
    )
    return replace(base, **changes)


async def _add(store: Store, *shares: Share) -> None:
    def work(tx: Tx) -> None:
        for share in shares:
            tx.add_share(share)

    await store.transact(work)


async def _all(store: Store, owner: OwnerId = LOCAL) -> list[str]:
    return [share.id for share in await store.read(lambda tx: tx.shares(owner, 100))]


@pytest.mark.anyio
class ShareRowsContract:
    async def test_a_share_is_found_as_it_was_added(self, store: Store) -> None:
        """By its id and by its token, with every field; a token that nobody has finds nothing."""
        full = _share(
            kind="recording",
            title=s.ODD,
            with_reasoning=True,
            with_tools=True,
            with_files=True,
            size=2**40,
            created_at=1.25,
            expires_at=2.5,
            last_opened_at=1.5,
        )
        await s.put(store, s.session())
        await _add(store, full, _share("2"))
        expected = await store.read(lambda tx: tx.share(full.id))
        assert expected is not None
        assert replace(expected, title="") == replace(full, title="")
        assert type(expected.with_tools) is bool
        assert await store.read(lambda tx: tx.share_with_token("digest 1")) == expected
        assert await store.read(lambda tx: tx.share_with_token("digest 2")) == _share("2")
        assert await store.read(lambda tx: tx.share_with_token("digest")) is None
        assert await store.read(lambda tx: tx.share(ShareId("share_3"))) is None

    async def test_two_shares_never_have_one_token(self, store: Store) -> None:
        await s.put(store, s.session())
        await _add(store, _share())
        with pytest.raises(StorageError):
            await _add(store, _share("2", token_digest="digest 1"))
        assert await _all(store) == ["share_1"]

    async def test_shares_are_listed_by_page_and_counted_by_owner(self, store: Store) -> None:
        """Newest first, those of the same moment by id; others' shares are neither listed nor counted."""
        await s.put(store, s.session())
        shares = [_share(str(n), created_at=float(n // 2), size=10**n) for n in range(5)]
        await _add(store, *shares, _share("x", owner=s.OTHER, size=7))

        async def page(last: Share | None) -> list[Share]:
            before = None if last is None else (last.created_at, last.id)
            return list(await store.read(lambda tx: tx.shares(LOCAL, 2, before)))

        assert [share.id for share in await s.pages(page, 2)] == [f"share_{n}" for n in (4, 3, 2, 1, 0)]
        assert await store.read(lambda tx: tx.shared_bytes(LOCAL)) == (5, 11111)
        assert await store.read(lambda tx: tx.shared_bytes(s.OTHER)) == (1, 7)
        assert await store.read(lambda tx: tx.shared_bytes(OwnerId("nobody"))) == (0, 0)

    async def test_expired_shares_are_found(self, store: Store) -> None:
        """Those of all owners that end by then, the earliest first; one without an end never does."""
        await s.put(store, s.session())
        ends = (30.0, 10.0, None, 20.0)
        await _add(store, *[_share(str(n), expires_at=at) for n, at in enumerate(ends)])
        assert await store.read(lambda tx: list(tx.expired_shares(20.0, 9))) == ["share_1", "share_3"]
        assert await store.read(lambda tx: list(tx.expired_shares(1e12, 2))) == ["share_1", "share_3"]
        assert await store.read(lambda tx: list(tx.expired_shares(9.9, 9))) == []

    async def test_opening_is_recorded_and_brings_nothing_back(self, store: Store) -> None:
        """Of a share that was revoked meanwhile, nothing remains."""
        await s.put(store, s.session())
        await _add(store, _share(), _share("2"))
        await store.transact(lambda tx: tx.touch_share(ShareId("share_1"), 5.5))
        assert await store.read(lambda tx: tx.share(ShareId("share_1"))) == _share(last_opened_at=5.5)
        await store.transact(lambda tx: tx.drop_shares([ShareId("share_1"), ShareId("share_9")]))
        await store.transact(lambda tx: tx.touch_share(ShareId("share_1"), 6.5))
        assert await _all(store) == ["share_2"]

    async def test_revoking_and_opening_at_once_leaves_nothing(self, store: Store) -> None:
        """Whatever order they commit in."""
        await s.put(store, s.session())
        await _add(store, *[_share(str(n)) for n in range(10)])
        async with anyio.create_task_group() as group:
            for n in range(10):
                share_id = ShareId(f"share_{n}")
                group.start_soon(store.transact, lambda tx, share_id=share_id: tx.touch_share(share_id, 5.0))
                group.start_soon(store.transact, lambda tx, share_id=share_id: tx.drop_shares([share_id]))
        assert await _all(store) == []

    async def test_shares_end_with_their_session(self, store: Store) -> None:
        """O1: `drop_session_shares` and `drop_session` erase those of one session, and only those."""
        await s.put(store, s.session("ses_a"), s.session("ses_b"), s.session("ses_c"))
        await _add(store, _share("a", "ses_a"), _share("b", "ses_b"), _share("c", "ses_c"))
        await store.transact(lambda tx: tx.drop_session_shares(SessionId("ses_a")))
        assert sorted(await _all(store)) == ["share_b", "share_c"]
        await store.transact(lambda tx: tx.drop_session(SessionId("ses_b")))
        assert await _all(store) == ["share_c"]

    async def test_the_file_of_a_share_is_no_orphan(self, store: Store) -> None:
        """Until the share is dropped, however old it is."""
        await s.put(store, s.session(), s.stored_file("file_1"), s.stored_file("file_2"))
        await _add(store, _share())

        async def orphans() -> list[str]:
            return [file.id for file in await store.read(lambda tx: tx.orphan_files(99.0, 9))]

        assert await orphans() == ["file_2"]
        await store.transact(lambda tx: tx.drop_shares([ShareId("share_1")]))
        assert sorted(await orphans()) == ["file_1", "file_2"]
