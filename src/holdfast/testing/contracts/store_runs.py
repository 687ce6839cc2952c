"""Lists of runs, keys, and which run may be claimed."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import pytest

from holdfast.core.errors import StorageError
from holdfast.core.ids import LOCAL, ApprovalId, NodeId, RunId, SessionId
from holdfast.core.lease import Lease
from holdfast.core.parts import json_size
from holdfast.core.run import OPEN, UNREAD_SETTINGS, Intent, Recovery, Run, RunStatus
from holdfast.ports.store import RunQuery, RunTimes, Store, Tx
from holdfast.testing.contracts import samples as s

MESSAGE = s.message("msg_1")
ENDED: tuple[RunStatus, ...] = ("complete", "cancelled", "failed", "interrupted")


def ids(runs: Sequence[Run]) -> list[str]:
    return [found.id for found in runs]


class RunLists:
    async def test_times_of_runs_are_read_by_id(self, store: Store) -> None:
        """As far as there are any, of those that exist, whoever they belong to."""
        await s.put(
            store,
            s.run("run_1", rank=1),
            s.run("run_2", rank=2, started_at=1.5),
            s.run("run_3", "ses_2", rank=3, owner=s.OTHER, started_at=1.5, ended_at=4.25),
            s.run("run_4", rank=4, started_at=9.0),
        )
        asked = [RunId(f"run_{n}") for n in (3, 1, 2, 3, 9)]
        times = {"run_1": RunTimes(None, None), "run_2": RunTimes(1.5, None), "run_3": RunTimes(1.5, 4.25)}
        assert await store.read(lambda tx: tx.run_times(asked)) == times
        assert await store.read(lambda tx: tx.run_times([])) == {}

    async def test_a_key_finds_its_run_in_its_own_session_alone(self, store: Store) -> None:
        """A2: the same key of another session or owner is another key. A repeated send finds the run as it is
        now, also after it has ended."""
        mine = s.run("run_1", key="k", status="complete", ended_at=5.0)
        elsewhere = s.run("run_2", "ses_2", key="k")
        theirs = s.run("run_3", owner=s.OTHER, key="k")
        await s.put(store, s.session(), s.session("ses_2"), s.run("run_1", key="k"))
        await s.put(store, mine, elsewhere, theirs, s.run("run_4"), s.run("run_5", key=s.ODD))
        assert await store.read(lambda tx: tx.run_with_key(LOCAL, s.SID, s.ODD)) == s.run("run_5", key=s.ODD)
        assert await store.read(lambda tx: tx.run_with_key(LOCAL, s.SID, "k")) == mine
        assert await store.read(lambda tx: tx.run_with_key(LOCAL, SessionId("ses_2"), "k")) == elsewhere
        assert await store.read(lambda tx: tx.run_with_key(s.OTHER, s.SID, "k")) == theirs
        others = ("K", "", "k ", "%")
        assert set(await store.read(lambda tx: [tx.run_with_key(LOCAL, s.SID, key) for key in others])) == {None}

    async def test_leases_are_renewed_in_one_step(self, store: Store) -> None:
        """X2: those that the holder still has, and the connections that are named; whoever lost one is told how the run
        stands, and what has ended is nobody's."""
        mine, theirs, new = Lease(s.NODE, 10.0), Lease(NodeId("node_2"), 10.0), Lease(s.NODE, 40.0)
        await s.put(
            store,
            s.session(),
            s.run("run_1", status="running", lease=mine, rank=1),
            s.run("run_2", status="running", lease=theirs, epoch=2, rank=2),
            s.run("run_3", status="waiting", lease=None, rank=3, intent=Intent("cancelled")),
            s.run("run_4", status="complete", ended_at=3.0, rank=4),
            s.run("run_5", status="queued", connection=theirs, rank=5),
            s.run("run_6", status="running", lease=mine, connection=mine, rank=6),
            s.run("run_7", status="running", lease=mine, connection=mine, rank=7),
        )
        held = [RunId(f"run_{n}") for n in (1, 2, 3, 4, 6, 8)]
        connections = [RunId(f"run_{n}") for n in (4, 5, 6, 8)]
        found = await store.transact(lambda tx: tx.renew_leases(new, held, connections))
        assert sorted(ids(found)) == ["run_1", "run_2", "run_3", "run_5", "run_6"]
        expected = {
            "run_1": (new, None),
            "run_2": (theirs, None),
            "run_3": (None, None),
            "run_4": (None, None),
            "run_5": (None, new),
            "run_6": (new, new),
            "run_7": (mine, mine),
        }
        rows = [await store.read(lambda tx, rid=rid: tx.run(RunId(rid))) for rid in expected]  # type: ignore[misc]
        assert {run.id: (run.lease, run.connection) for run in rows if run is not None} == expected
        assert all(run in rows for run in found)
        assert await store.transact(lambda tx: tx.renew_leases(new, (), ())) == []

    async def test_a_row_is_written_again_as_it_is_now(self, store: Store) -> None:
        """One step may read a run and write it, have its lease renewed or the row dropped, and write it again: the last
        word stands, whatever was written or read of it before."""
        mine, new = Lease(s.NODE, 10.0), Lease(s.NODE, 40.0)
        first = s.run("run_1", status="running", lease=mine, rank=1)
        second = s.run("run_2", status="running", lease=mine, rank=2, key="k")
        await s.put(store, s.session(), MESSAGE, first, second)

        def work(tx: Tx) -> None:
            for run in (first, second):
                assert tx.run(run.id) == run
                tx.put_run(replace(run, intent=Intent("cancelled")))
            tx.renew_leases(new, [first.id], [])
            tx.put_run(first)  # with the lease that it had, and without the intent
            assert tx.run(first.id) == first
            for _ in range(2):
                tx.drop_run(second.id)
                tx.put_run(second)
            assert tx.run(second.id) == second
            assert (tx.session(s.SID), tx.message(MESSAGE.id)) == (s.session(), MESSAGE)
            tx.drop_messages(s.SID)
            tx.put_message(MESSAGE)
            assert tx.message(MESSAGE.id) == MESSAGE
            tx.put_session(s.session(title="harbour"))
            tx.drop_session(s.SID)
            s.write(tx, [s.session(title="harbour"), MESSAGE, second])

        await store.transact(work)
        assert await store.read(lambda tx: tx.run(first.id)) is None  # it went with its session
        assert await store.read(lambda tx: tx.run(second.id)) == second
        assert await store.read(lambda tx: tx.run_with_key(LOCAL, s.SID, "k")) == second
        assert await store.read(lambda tx: tx.message(MESSAGE.id)) == MESSAGE
        assert [hit.session.id for hit in await store.read(lambda tx: tx.search(LOCAL, "harbour", 9, None))] == [s.SID]

    async def test_a_dropped_run_leaves_no_trace(self, store: Store) -> None:
        """After `drop_run` neither id nor key nor list knows the run, its questions, and so its tools' arguments, are
        gone, and its key may be used anew."""
        await s.put(store, s.session(), s.run(key="k", recovery=Recovery("pending")), s.run("run_2", rank=2))
        await s.put(store, s.approval("apr_1"), s.approval("apr_2", "run_2"), s.approval("apr_3", decision="deny"))
        await store.transact(lambda tx: tx.drop_run(s.RID))
        names = [ApprovalId(f"apr_{n}") for n in (1, 2, 3)]
        assert await store.read(lambda tx: [name for name in names if tx.approval(name)]) == ["apr_2"]
        assert list(await store.read(lambda tx: tx.open_approvals(s.RID))) == []
        gone = await store.read(lambda tx: (tx.run(s.RID), tx.run_with_key(LOCAL, s.SID, "k"), *tx.pending_runs(9)))
        assert gone == (None, None)
        for runs in await store.read(lambda tx: (tx.open_runs(s.SID), tx.all_open_runs(9), tx.runs(RunQuery(LOCAL)))):
            assert ids(runs) == ["run_2"]
        await s.put(store, s.run("run_3", key="k"))
        assert await store.read(lambda tx: tx.run_with_key(LOCAL, s.SID, "k")) == s.run("run_3", key="k")

    async def test_one_key_cannot_belong_to_two_runs(self, store: Store) -> None:
        """A2: a second run under a key that is taken is refused with all of its transaction."""
        first = s.run("run_1", key="k")
        await s.put(store, s.session(), first)
        with pytest.raises(StorageError):
            await s.put(store, s.session(title="second"), s.run("run_2", key="k"))
        assert await store.read(lambda tx: tx.run(RunId("run_2"))) is None
        assert await store.read(lambda tx: tx.session(s.SID)) == s.session()
        assert await store.read(lambda tx: tx.run_with_key(LOCAL, s.SID, "k")) == first

    async def test_canceled_keys_are_known_until_they_are_trimmed(self, store: Store) -> None:
        """C1: each session has its own; a repeat changes the time, and no run is made."""
        await s.put(store, s.session(), s.session("ses_2"))
        before = await store.read(lambda tx: tx.now)
        for key in ("k", "k", s.ODD):
            await store.transact(lambda tx, key=key: tx.cancel_key(s.SID, key))  # type: ignore[misc]
        at = await store.read(lambda tx: tx.key_cancelled_at(s.SID, s.ODD))
        assert at is not None
        assert at >= before
        assert await store.read(lambda tx: tx.count_cancelled_keys(s.SID)) == 2
        other = SessionId("ses_2")
        assert await store.read(lambda tx: (tx.key_cancelled_at(other, "k"), tx.count_cancelled_keys(other))) == (
            None,
            0,
        )
        assert await store.read(lambda tx: tx.run_with_key(LOCAL, s.SID, "k")) is None
        await store.transact(lambda tx: tx.trim_cancelled_keys(s.SID, before))
        assert await store.read(lambda tx: tx.count_cancelled_keys(s.SID)) == 2
        await store.transact(lambda tx: tx.trim_cancelled_keys(s.SID, at + 1.0))
        assert await store.read(lambda tx: tx.key_cancelled_at(s.SID, "k")) is None

    async def test_a_taken_run_keeps_nobody_waiting(self, store: Store) -> None:
        """J1: its text may be part of a run whose journal cannot be read; those behind it may be claimed."""
        taken = s.run("run_a", rank=1, in_tree=False, intent=Intent("cancelled"), steers=RunId("run_0"))
        behind = s.run("run_b", rank=2, in_tree=False)
        await s.put(store, s.session(), taken, behind)
        assert ids(await store.read(lambda tx: tx.claimable_runs(9))) == ["run_b"]
        assert await store.read(lambda tx: tx.run(taken.id)) == taken
        await s.put(store, replace(taken, steers=None))
        assert ids(await store.read(lambda tx: tx.claimable_runs(9))) == []

    async def test_open_runs_of_a_session_come_by_rank(self, store: Store) -> None:
        """A3: queued, running and waiting runs are open, in the order of their ranks; ended ones are not."""
        await s.put(store, s.session(), s.session("ses_2"))
        await s.put(
            store,
            s.run("run_a", rank=30),
            s.run("run_b", rank=-1, status="running"),
            s.run("run_c", rank=7, status="waiting", in_tree=False),
            s.run("run_d", "ses_2", rank=2),
            *(s.run(f"run_{status}", rank=3, status=status) for status in ENDED),
        )
        assert ids(await store.read(lambda tx: tx.open_runs(s.SID))) == ["run_b", "run_c", "run_a"]
        await s.put(store, s.run("run_b", status="complete"), s.run("run_a", rank=5))
        assert ids(await store.read(lambda tx: tx.open_runs(s.SID))) == ["run_a", "run_c"]

    async def test_the_bytes_of_queued_messages_are_counted(self, store: Store) -> None:
        """Those of the user messages that wait outside the tree of one session, and of no others."""
        counted = [s.message("msg_1", text=s.ODD, in_tree=False), s.message("msg_2", text="b", in_tree=False)]
        await s.put(
            store,
            s.session(),
            *counted,
            s.message("msg_3", text="in the tree"),
            s.message("msg_4", text="cancelled", in_tree=False),
            s.message("msg_5", "ses_2", text="another session's", in_tree=False),
            s.run("run_1", user_message_id="msg_1", in_tree=False, rank=1),
            s.run("run_2", user_message_id="msg_2", in_tree=False, rank=2),
            s.run("run_3", user_message_id="msg_3", rank=3),
            s.run("run_4", user_message_id="msg_4", in_tree=False, rank=4, status="cancelled"),
            s.run("run_5", "ses_2", user_message_id="msg_5", in_tree=False, rank=5),
        )
        expected = sum(json_size(message.parts) for message in counted)
        assert await store.read(lambda tx: tx.queued_bytes(s.SID)) == expected
        assert await store.read(lambda tx: tx.queued_bytes(SessionId("ses_3"))) == 0

    async def test_all_open_runs_are_paged_by_id(self, store: Store) -> None:
        """X2: a sweep over all sessions meets every open run once, whatever its rank or owner."""
        await s.put(store, *(s.session(f"ses_{n}") for n in range(3)))
        statuses = [*OPEN, *ENDED]
        await s.put(
            store,
            *(
                s.run(f"run_{n:02}", f"ses_{n % 3}", rank=-n, status=statuses[n % 7], owner=(LOCAL, s.OTHER)[n % 2])
                for n in range(28)
            ),
        )
        expected = [f"run_{n:02}" for n in range(28) if statuses[n % 7] in OPEN]

        async def page(last: Run | None) -> Sequence[Run]:
            return await store.read(lambda tx: tx.all_open_runs(5, last.id if last else None))

        assert ids(await s.pages(page, 5)) == expected

    async def test_pending_runs_come_oldest_first(self, store: Store) -> None:
        """J2: runs whose output is still sought are listed by `since`, of one session or of all."""
        await s.put(store, s.session(), s.session("ses_2"))
        ended: dict[str, Any] = {"status": "interrupted", "ended_at": 1.0}
        await s.put(
            store,
            s.run("run_a", recovery=Recovery("pending", 30.0, 1), **ended),
            s.run("run_b", "ses_2", recovery=Recovery("pending", 10.0), **ended),
            s.run("run_c", recovery=Recovery("pending", 20.0), **ended),
            s.run("run_d", recovery=Recovery("recovered", 1.0), **ended),
            s.run("run_e", recovery=Recovery("none", 1.0), **ended),
            s.run("run_f", **ended),
        )
        assert ids(await store.read(lambda tx: tx.pending_runs(9))) == ["run_b", "run_c", "run_a"]
        assert ids(await store.read(lambda tx: tx.pending_runs(2))) == ["run_b", "run_c"]
        assert ids(await store.read(lambda tx: tx.pending_runs(9, s.SID))) == ["run_c", "run_a"]
        await s.put(store, s.run("run_c", recovery=Recovery("recovered"), **ended))
        assert ids(await store.read(lambda tx: tx.pending_runs(9))) == ["run_b", "run_a"]

    async def test_runs_are_listed_newest_first_with_filters(self, store: Store) -> None:
        """The list of an owner's runs goes by creation, then id, and is narrowed by status and session."""
        await s.put(store, s.session(), s.session("ses_2"))
        await s.put(
            store,
            s.run("run_a", created_at=2.0, status="complete"),
            s.run("run_b", created_at=9.0, status="failed"),
            s.run("run_c", "ses_2", created_at=2.0, status="running"),
            s.run("run_d", created_at=1.0),
            s.run("run_e", created_at=5.0, owner=s.OTHER),
        )

        async def listed(status: Collection[str] | None = None, sid: SessionId | None = None) -> list[str]:
            return ids(await store.read(lambda tx: tx.runs(RunQuery(LOCAL, sid, status))))

        assert await listed() == ["run_b", "run_c", "run_a", "run_d"]
        assert await listed({"queued", "running"}) == ["run_c", "run_d"]
        assert await listed(["complete"], s.SID) == ["run_a"]
        assert await listed(sid=SessionId("ses_2")) == ["run_c"]
        assert await listed([]) == []
        assert await listed(["no such status"]) == []

    async def test_pages_of_runs_have_each_run_once(self, store: Store) -> None:
        """Following `before` gives the whole list in order, also where many have the same time."""
        await s.put(store, s.session())
        await s.put(store, *(s.run(f"run_{n:02}", created_at=float(n // 4), status="complete") for n in range(19)))
        await s.put(store, s.run("run_99", created_at=2.5))

        async def page(last: Run | None) -> Sequence[Run]:
            before = (last.created_at, last.id) if last else None
            return await store.read(lambda tx: tx.runs(RunQuery(LOCAL, s.SID, ["complete"], 3, before)))

        assert ids(await s.pages(page, 3)) == [f"run_{n:02}" for n in reversed(range(19))]

    async def test_lists_of_runs_do_without_their_settings(self, store: Store) -> None:
        """Those may be megabytes of tools. A run out of a list cannot be stored, because that would erase them."""
        await s.put(store, s.session(), s.run("run_1", settings={"tools": s.LONG}, in_tree=False))
        for found in await store.read(lambda tx: (tx.runs(RunQuery(LOCAL)), tx.shown_open_runs(s.SID))):
            (listed,) = found
            assert listed.settings is UNREAD_SETTINGS
            assert replace(listed, settings=None) == s.run("run_1", in_tree=False)
            with pytest.raises(TypeError):
                await store.transact(lambda tx, run=listed: tx.put_run(run))  # type: ignore[misc]
        row = await store.read(lambda tx: tx.run(RunId("run_1")))
        assert row == s.run("run_1", settings={"tools": s.LONG}, in_tree=False)

    async def test_runs_are_filtered_by_their_settings(self, store: Store) -> None:
        """By the value at a path, in both orders and with cursors; the same name and value elsewhere do not count, and
        characters that a database cannot have as text do not matter."""
        await s.put(store, s.session())
        named = {"openai": {"model": "a_%"}, "x": "\0\\u0000\\ud800"}
        within = {"openai": {"x": {"model": "a_%", "n": 1, "openai": {"model": "a_%", "n": 1}}}}
        one = {"openai": {"model": "A_%", "n": False}}
        settings: list[Any] = [
            named,
            None,
            {"x": '"openai":{"model":"a_%"'},
            one,
            named,
            within,
            {"x": named},
            [],
            {"openai": 1},
        ]
        runs = [
            s.run(f"run_{n}", created_at=float(n), status="complete", settings=each) for n, each in enumerate(settings)
        ]
        await s.put(store, *runs)

        async def listed(**filters: Any) -> list[str]:
            return ids(await store.read(lambda tx: tx.runs(RunQuery(LOCAL, status=["complete"], **filters))))

        model, n = ("openai", "model"), ("openai", "n")
        assert await listed(settings_with={("openai",): None}) == ["run_8", "run_5", "run_4", "run_3", "run_0"]
        assert await listed(settings_with={model: None}) == ["run_4", "run_3", "run_0"]
        assert await listed(settings_with={model: None}, settings_without=[n]) == ["run_4", "run_0"]
        assert await listed(settings_with={model: "a_%"}) == ["run_4", "run_0"]
        assert await listed(settings_with={model: None, n: None}) == ["run_3"]
        assert await listed(settings_with={model: None}, limit=1) == ["run_4"]
        assert await listed(settings_with={model: None}, among_newest=6) == ["run_4", "run_3"]
        asked: dict[str, Any] = {"settings_with": {model: None}, "oldest_first": True, "limit": 2}
        assert await listed(**asked) == ["run_0", "run_3"]
        assert await listed(**asked, before=(3.0, "run_3")) == ["run_4"]
        assert await listed(**asked, among_newest=6) == ["run_3", "run_4"]

    async def test_open_runs_are_counted_by_status(self, store: Store) -> None:
        """Those of all owners; ended runs are not counted."""
        assert await store.read(lambda tx: tx.count_open_runs()) == {}
        await s.put(store, s.session(), s.run("run_1"), s.run("run_2", owner=s.OTHER), s.run("run_3", status="waiting"))
        await s.put(store, s.run("run_4", status="complete", ended_at=2.0))
        assert await store.read(lambda tx: tx.count_open_runs()) == {"queued": 2, "waiting": 1}

    async def test_queued_runs_are_counted_by_owner(self, store: Store) -> None:
        """Neither runs in another state nor those of others count."""
        await s.put(store, s.session(), s.session("ses_other", owner=s.OTHER))
        await s.put(store, s.run("run_1"), s.run("run_2"), s.run("run_3", status="running"))
        await s.put(store, s.run("run_4", "ses_other", owner=s.OTHER))
        for owner, count, expected in ((LOCAL, 2, True), (LOCAL, 3, False), (s.OTHER, 1, True), (s.OTHER, 2, False)):
            assert await store.read(lambda tx, o=owner, c=count: tx.has_queued_runs(o, c)) == expected  # type: ignore[misc]

    async def test_only_settled_journals_past_their_retention_are_prunable(self, store: Store) -> None:
        """Open, pending, pruned and young runs keep their journals."""
        await s.put(store, s.session())
        old: dict[str, Any] = {"status": "complete", "ended_at": 10.0}
        await s.put(
            store,
            s.run("run_old", **old),
            s.run("run_recovered", **(old | {"status": "interrupted"}), recovery=Recovery("recovered")),
            s.run("run_none", **(old | {"status": "interrupted"}), recovery=Recovery("none")),
            s.run("run_pruned", **old, pruned=True),
            s.run("run_pending", **(old | {"status": "interrupted"}), recovery=Recovery("pending")),
            s.run("run_young", **(old | {"ended_at": 30.0})),
            s.run("run_open", status="running"),
            s.run("run_queued"),
        )
        found = await store.read(lambda tx: tx.prunable_runs(20.0, 9))
        assert set(found) == {"run_old", "run_recovered"}
        assert len(await store.read(lambda tx: tx.prunable_runs(20.0, 2))) == 2
        await s.put(store, s.run("run_old", **old, pruned=True))
        assert set(await store.read(lambda tx: tx.prunable_runs(20.0, 9))) == {"run_recovered"}


async def claimable(store: Store, limit: int = 9) -> list[str]:
    return ids(await store.read(lambda tx: tx.claimable_runs(limit)))


QUEUED = s.run("run_q", rank=2, in_tree=False)
CLAIMS: dict[str, tuple[Sequence[Run], Sequence[str]]] = {
    "a queued run, in the tree or not": ([QUEUED], ["run_q"]),
    "ended runs do not count": (
        [QUEUED, *(s.run(f"run_{status}", rank=-9, status=status) for status in ENDED)],
        ["run_q"],
    ),
    "A3: a running run keeps the session busy": ([QUEUED, s.run("run_r", rank=5, status="running")], []),
    "A3: a waiting run keeps the session busy": ([QUEUED, s.run("run_w", rank=-5, status="waiting")], []),
    "A3: the smallest rank": ([QUEUED, s.run("run_p", rank=1, in_tree=False, created_at=9.0)], ["run_p"]),
    "shown messages go first": ([QUEUED, s.run("run_in", rank=8), s.run("run_in_2", rank=9)], ["run_in"]),
    "a cancelled first run holds back": ([QUEUED, s.run("run_p", rank=1, intent=Intent("cancelled"))], []),
    "a failed first run holds back": ([QUEUED, s.run("run_p", rank=1, intent=Intent("failed"))], []),
    "a doomed later run does not": (
        [QUEUED, s.run("run_z", rank=3, in_tree=False, intent=Intent("failed"))],
        ["run_q"],
    ),
    "J1: nor a pending recovery": (
        [QUEUED, s.run("run_p", status="interrupted", recovery=Recovery("pending"))],
        ["run_q"],
    ),
}


class ClaimableRuns:
    @pytest.mark.parametrize(("runs", "expected"), CLAIMS.values(), ids=CLAIMS)
    async def test_one_run_of_a_session_is_claimable(
        self, store: Store, runs: Sequence[Run], expected: Sequence[str]
    ) -> None:
        """A3: of the queued runs of an idle session, one in the tree goes first, then the one of smallest rank."""
        await s.put(store, s.session(), *runs)
        assert await claimable(store) == expected

    async def test_the_next_run_is_claimable_when_the_first_has_ended(self, store: Store) -> None:
        """A3: queued turns come one after another, by rank; those in the tree before all others."""
        ranks = {"run_a": 3, "run_b": 1, "run_c": 2}
        await s.put(store, s.session(), *(s.run(name, rank=rank, in_tree=False) for name, rank in ranks.items()))
        await s.put(store, s.run("run_in", rank=8), s.run("run_d", rank=0, intent=Intent("cancelled"), in_tree=False))
        for expected in (["run_in"], [], ["run_b"], ["run_c"], ["run_a"]):
            assert await claimable(store) == expected
            await s.put(store, s.run(*(expected or ["run_d"]), status="complete"))
        assert await claimable(store) == []

    async def test_sessions_are_served_by_rank(self, store: Store) -> None:
        """Over all sessions the claimable runs come by rank, in the tree or not, up to the limit."""
        await s.put(store, *(s.session(f"ses_{n}", owner=(LOCAL, s.OTHER)[n % 2]) for n in range(5)))
        await s.put(
            store,
            *(s.run(f"run_{n}", f"ses_{n}", rank=(7 * n) % 5, in_tree=n % 2 == 0) for n in range(5)),
        )
        by_rank = sorted((f"run_{n}" for n in range(5)), key=lambda name: 7 * int(name[-1]) % 5)
        assert await claimable(store) == by_rank
        assert await claimable(store, 2) == by_rank[:2]

    async def test_busy_sessions_do_not_use_up_the_limit(self, store: Store) -> None:
        """The limit counts runs that can be claimed: many blocked ones of smaller rank hide none."""
        await s.put(store, *(s.session(f"ses_{n}") for n in range(11)))
        for n in range(10):
            await s.put(store, s.run(f"busy_{n}", f"ses_{n}", status="running"), s.run(f"run_{n}", f"ses_{n}", rank=n))
        await s.put(store, s.run("run_free", "ses_10", rank=99))
        assert await claimable(store, 1) == ["run_free"]
