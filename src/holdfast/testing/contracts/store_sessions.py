"""Lists of sessions, the tree of messages, and what erasing takes with it."""

from collections.abc import Sequence
from dataclasses import replace

from holdfast.core.drafts import Draft
from holdfast.core.ids import LOCAL, ApprovalId, MessageId, OwnerId, RunId, SessionId
from holdfast.core.memory_ledger import Ledger
from holdfast.core.parts import json_size
from holdfast.core.run import Recovery
from holdfast.core.session import COMPARE, Session
from holdfast.ports.store import Change, PathEntry, RunQuery, SessionQuery, Store, Tx
from holdfast.testing.contracts import samples as s


async def listed(store: Store, query: SessionQuery) -> list[str]:
    return [found.id for found in await store.read(lambda tx: tx.sessions(query))]


async def children(store: Store, parent: str | None, sid: str = s.SID) -> list[str]:
    above = None if parent is None else MessageId(parent)
    return list(await store.read(lambda tx: tx.children(SessionId(sid), above)))


class SessionsAndMessages:
    async def test_the_list_follows_a_changed_session_at_once(self, store: Store) -> None:
        """P7: title, place and filters of the list are those of the session as it is now."""
        await s.put(store, s.session("ses_a"), s.session("ses_b", updated_at=2.0))
        changed = s.session("ses_a", updated_at=3.0, title="new", version=2)
        await s.put(store, changed)
        assert (await store.read(lambda tx: tx.sessions(SessionQuery(LOCAL))))[0] == changed
        await s.put(store, replace(changed, archived=True))
        assert await listed(store, SessionQuery(LOCAL)) == ["ses_b"]

    async def test_the_list_is_filtered_by_owner_archive_and_project(self, store: Store) -> None:
        """A list has the owner's sessions alone, archived or not as asked, of one project or of all."""
        await s.put(
            store,
            s.session("ses_plain"),
            s.session("ses_other", owner=s.OTHER),
            s.session("ses_archived", archived=True),
            s.session("ses_p", project="p"),
            s.session("ses_p_archived", project="p", archived=True),
            s.session("ses_empty", project=""),
        )
        assert set(await listed(store, SessionQuery(LOCAL))) == {"ses_plain", "ses_p", "ses_empty"}
        assert await listed(store, SessionQuery(s.OTHER)) == ["ses_other"]
        assert set(await listed(store, SessionQuery(LOCAL, True))) == {"ses_archived", "ses_p_archived"}
        assert await listed(store, SessionQuery(LOCAL, project="p")) == ["ses_p"]
        assert await listed(store, SessionQuery(LOCAL, True, "p")) == ["ses_p_archived"]
        assert await listed(store, SessionQuery(LOCAL, project="P")) == []

    async def test_sessions_of_comparisons_are_told_apart(self, store: Store) -> None:
        """A list has all sessions, or only those of comparisons, or only the others."""
        compared = s.session("ses_compared", settings={"source": COMPARE, "comparison": {"id": "c"}})
        await s.put(store, compared, s.session("ses_api", settings={"source": "openai"}), s.session("ses_plain"))
        assert await listed(store, SessionQuery(LOCAL, comparisons=True)) == ["ses_compared"]
        assert set(await listed(store, SessionQuery(LOCAL, comparisons=False))) == {"ses_api", "ses_plain"}
        assert len(await listed(store, SessionQuery(LOCAL))) == 3

    async def test_pages_of_the_list_have_each_session_once(self, store: Store) -> None:
        """Following `before` gives the whole list in order, also where many have the same time or the session of the
        cursor is gone."""
        await s.put(store, *(s.session(f"ses_{n:02}", updated_at=float(n // 4)) for n in range(19)))
        whole = await listed(store, SessionQuery(LOCAL, limit=99))

        async def page(last: Session | None) -> Sequence[Session]:
            before = (last.updated_at, last.id) if last else None
            return await store.read(lambda tx: tx.sessions(SessionQuery(LOCAL, limit=3, before=before)))

        paged = await s.pages(page, 3)
        assert [found.id for found in paged] == whole == [f"ses_{n:02}" for n in reversed(range(19))]
        await store.transact(lambda tx: tx.drop_session(paged[2].id))
        assert [found.id for found in await page(paged[2])] == whole[3:6]

    async def test_the_ids_of_all_sessions_are_listed(self, store: Store) -> None:
        """Newest first, archived ones last, and none of another owner."""
        for n, archived in enumerate([False, True, False, True]):
            await s.put(store, s.session(f"ses_{n}", updated_at=float(n), archived=archived))
        await s.put(store, s.session("ses_9", owner=OwnerId("other")))
        assert await store.read(lambda tx: tx.session_ids(LOCAL)) == ["ses_2", "ses_0", "ses_3", "ses_1"]

    async def test_deleted_sessions_are_hidden_until_they_are_purged(self, store: Store) -> None:
        """A deleted session is in no list, can still be read by id, and is named for purging until it is dropped."""
        gone = s.session("ses_gone", deleted_at=2.0)
        await s.put(store, s.session(), gone, s.session("ses_gone_2", deleted_at=1.0, archived=True))
        assert await listed(store, SessionQuery(LOCAL)) == [s.SID]
        assert await listed(store, SessionQuery(LOCAL, archived=True)) == []
        assert await store.read(lambda tx: tx.session_ids(LOCAL)) == [s.SID]
        assert await store.read(lambda tx: tx.session(gone.id)) == gone
        assert set(await store.read(lambda tx: tx.deleted_sessions(9))) == {"ses_gone", "ses_gone_2"}
        assert len(await store.read(lambda tx: tx.deleted_sessions(1))) == 1
        await store.transact(lambda tx: tx.drop_session(gone.id))
        assert await store.read(lambda tx: tx.deleted_sessions(9)) == ["ses_gone_2"]

    async def test_known_messages_are_those_of_the_session(self, store: Store) -> None:
        """Of the given ids, those that messages of this session have, in the tree or not."""
        outside = s.message("msg_2", in_tree=False)
        await s.put(store, s.session(), s.session("ses_2"), s.message("msg_1"), outside, s.message("msg_3", "ses_2"))
        asked = [MessageId(f"msg_{n}") for n in range(1, 5)]
        assert set(await store.read(lambda tx: tx.known_messages(s.SID, asked))) == {"msg_1", "msg_2"}
        assert not await store.read(lambda tx: tx.known_messages(s.SID, []))

    async def test_children_come_oldest_first(self, store: Store) -> None:
        """Siblings are in the order of their creation, then of their ids, whatever the order of writing. Those of
        None are the roots of that session."""
        times = {"msg_z": 2.0, "msg_b": 3.0, "msg_a": 3.0, "msg_c": 10.0}
        await s.put(store, s.session(), s.session("ses_2"), s.message("msg_2", "ses_2"), s.message("msg_root"))
        await s.put(store, *(s.message(mid, parent_id="msg_root", created_at=at) for mid, at in times.items()))
        assert await children(store, "msg_root") == ["msg_z", "msg_a", "msg_b", "msg_c"]
        assert await children(store, None) == ["msg_root"]
        assert await children(store, None, "ses_2") == ["msg_2"]

    async def test_children_outside_the_tree_are_not_seen_until_they_join(self, store: Store) -> None:
        """A3: a queued turn hangs nowhere; it is a child from the transaction on that puts it into the tree."""
        waiting = s.message("msg_2", created_at=2.0, in_tree=False)
        await s.put(store, s.session(), s.message("msg_1"), waiting)
        assert await children(store, None) == ["msg_1"]
        assert await children(store, "msg_1") == []
        assert await store.read(lambda tx: tx.message(waiting.id)) == waiting
        await s.put(store, replace(waiting, parent_id=MessageId("msg_1"), in_tree=True))
        assert await children(store, None) == ["msg_1"]
        assert await children(store, "msg_1") == ["msg_2"]

    async def test_a_long_message_can_be_read_without_its_parts(self, store: Store) -> None:
        """The limit counts bytes of the parts as JSON, and nothing else of the message is left out."""
        short, long = s.message("msg_1", text="é"), s.message("msg_2", text=s.LONG, model="m", in_tree=False)
        await s.put(store, s.session(), short, long)
        size = json_size(short.parts)
        assert await store.read(lambda tx: tx.message_within(short.id, size)) == short
        assert await store.read(lambda tx: tx.message_within(short.id, size - 1)) == replace(short, parts=())
        assert await store.read(lambda tx: tx.message_within(long.id, 1000)) == replace(long, parts=())
        assert await store.read(lambda tx: tx.message_within(long.id, json_size(long.parts))) == long
        assert await store.read(lambda tx: tx.message_within(MessageId("msg_3"), 1000)) is None

    async def test_a_path_is_listed_without_contents(self, store: Store) -> None:
        """From the root to the message; of siblings only those on it, and nothing of a message outside the tree."""
        await s.put(
            store,
            s.session(),
            s.message("msg_z"),
            s.message("msg_b", parent_id="msg_z", role="assistant", run_id="run_1"),
            s.message("msg_c", parent_id="msg_z", role="assistant"),
            s.message("msg_a", parent_id="msg_b"),
            s.message("msg_q", in_tree=False),
        )
        expected = [
            PathEntry(MessageId("msg_z"), "user", None),
            PathEntry(MessageId("msg_b"), "assistant", RunId("run_1")),
            PathEntry(MessageId("msg_a"), "user", None),
        ]
        for n, entry in enumerate(expected, 1):
            assert await store.read(lambda tx, mid=entry.id: tx.path(mid)) == expected[:n]  # type: ignore[misc]
        for mid in ("msg_q", "msg_none"):
            assert await store.read(lambda tx, mid=mid: tx.path(MessageId(mid))) == []  # type: ignore[misc]

    async def test_clearing_erases_the_messages_of_one_session(self, store: Store) -> None:
        """`drop_messages` leaves no message, child or compaction of that session, and all of the others."""
        await s.put(store, s.session(), s.session("ses_2"), s.run(status="running"))
        await s.put(store, s.message("msg_1"), s.message("msg_2", parent_id="msg_1"), s.compaction("msg_1"))
        await s.put(store, s.message("msg_3", "ses_2"), s.compaction("msg_3", "ses_2"))
        await store.transact(lambda tx: tx.drop_messages(s.SID))
        assert await children(store, None) == []
        assert await children(store, "msg_1") == []
        assert await store.read(lambda tx: tx.message(MessageId("msg_2"))) is None
        assert await store.read(lambda tx: dict(tx.compactions(s.SID))) == {}
        assert await store.read(lambda tx: tx.session(s.SID)) == s.session()
        assert await store.read(lambda tx: tx.run(s.RID)) == s.run(status="running")
        assert await children(store, None, "ses_2") == ["msg_3"]
        assert await store.read(lambda tx: len(tx.compactions(SessionId("ses_2")))) == 1

    async def test_clearing_spares_what_is_queued_and_nothing_else(self, store: Store) -> None:
        """Messages of a run that is queued outside the tree stay; those of other open and of cancelled ones do not."""
        await s.put(
            store,
            s.session(),
            s.run("run_r", status="running"),
            s.message("run_r-question"),
            s.message("run_r-answer", role="assistant", run_id="run_r", status="streaming"),
            s.run("run_t"),
            s.message("run_t-question"),
            s.run("run_q", in_tree=False, rank=2),
            s.message("run_q-question", in_tree=False),
            s.message("run_q-answer", in_tree=False, role="assistant", run_id="run_q", status="streaming"),
            s.run("run_c", in_tree=False, rank=3, status="cancelled"),
            s.message("run_c-question", in_tree=False),
            s.message("run_c-answer", in_tree=False, role="assistant", run_id="run_c", status="cancelled"),
        )
        await store.transact(lambda tx: tx.drop_messages(s.SID))
        names = [f"run_{run}-{role}" for run in "rtqc" for role in ("question", "answer")]
        left = await store.read(lambda tx: [name for name in names if tx.message(MessageId(name))])
        assert left == ["run_q-question", "run_q-answer"]

    async def test_dropping_a_session_erases_all_that_hangs_on_it(self, store: Store) -> None:
        """M11: after `drop_session` no message, run, approval, compaction, key, ledger or dirty turn of it is found by
        any way. What was learned from it stays, and the change feed still tells clients of the deletion."""

        def rows(n: str) -> tuple[s.Row, ...]:
            sid = f"ses_{n}"
            return (
                s.session(sid),
                s.message(f"msg_{n}", sid),
                s.message(f"out_{n}", sid, in_tree=False),
                s.run(f"run_{n}", sid, key="key"),
                s.run(f"old_{n}", sid, status="interrupted", ended_at=1.0, recovery=Recovery("pending")),
                s.approval(f"apr_{n}", f"run_{n}", sid),
                s.approval(f"dec_{n}", f"run_{n}", sid, decision="once", decided_at=2.0),
                s.compaction(f"msg_{n}", sid),
                Ledger(SessionId(sid), LOCAL),
                s.dirty_turn(1, session_id=SessionId(sid)),
                s.fact(f"fct_{n}", session_id=SessionId(sid)),
                Draft(LOCAL, sid, "typed", 1, 1.0),
            )

        def look(tx: Tx, n: str) -> list[object]:
            sid, rid = SessionId(f"ses_{n}"), RunId(f"run_{n}")
            return [
                tx.session(sid) is not None,
                tx.message(MessageId(f"msg_{n}")) is not None,
                tx.message(MessageId(f"out_{n}")) is not None,
                tx.children(sid, None) == [f"msg_{n}"],
                tx.run(rid) is not None,
                tx.run_with_key(LOCAL, sid, "key") is not None,
                tx.key_cancelled_at(sid, "gone") is not None,
                len(tx.open_runs(sid)) == 1,
                rid in [run.id for run in tx.all_open_runs(9)],
                rid in [run.id for run in tx.claimable_runs(9)],
                RunId(f"old_{n}") in [run.id for run in tx.pending_runs(9)],
                len(tx.runs(RunQuery(LOCAL, sid))) == 2,
                tx.approval(ApprovalId(f"apr_{n}")) is not None,
                len(tx.open_approvals(rid)) == 1,
                len(tx.compactions(sid)) == 1,
                tx.ledger(sid) is not None,
                len(tx.dirty_turns(sid, 9)) == 1,
                tx.draft(LOCAL, sid) is not None,
            ]

        async def put(n: str) -> None:
            await s.put(store, *rows(n))
            await store.transact(lambda tx: tx.cancel_key(SessionId(f"ses_{n}"), "gone"))

        await put("a")
        await put("b")
        await store.transact(lambda tx: tx.add_change(Change("session.deleted", LOCAL, SessionId("ses_a"))))
        await store.transact(lambda tx: tx.drop_session(SessionId("ses_a")))
        assert [change.kind for change in await store.read(lambda tx: tx.changes(0, 9))] == ["session.deleted"]
        assert not any(await store.read(lambda tx: look(tx, "a")))
        assert {fact.id for fact in await store.read(lambda tx: tx.facts(LOCAL, 9))} == {"fct_a", "fct_b"}
        assert all(await store.read(lambda tx: look(tx, "b")))
        await put("a")
        assert all(await store.read(lambda tx: look(tx, "a")))
