"""`kill -9` at every named point (`points.py`). Each case is: work until the server dies there, start again on the
same directory, compare with what clients had been shown, then go on working as if nothing had been."""

import signal
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.crash.client import DiedError, RefusedError, Server, Turn
from tests.crash.random_restarts import World, ended_as, last
from tests.crash.server import PUSHES

COMMIT = ("before-commit", "after-commit")
APPEND = (*COMMIT, "before-publish")


def at(what: str, whens: Iterable[str] = COMMIT, nth: int = 1) -> list[str]:
    return [f"{what}.{when}" if nth == 1 else f"{what}.{when}:{nth}" for when in whens]


def die_at(world: World, point: str, work: Callable[[World, Server], None], **settings: Any) -> None:
    """Do `work` on a server that dies at `point`."""
    with world.start(die=point, **settings) as server:
        try:
            server.ready()
            work(world, server)
            server.pump(lambda: False)  # the point comes by itself, or not at all
        except DiedError:
            pass
        assert server.buried() == -signal.SIGKILL, server.complaints()


def come_back(world: World, decision: str = "once", then: Callable[[Server, Any], None] | None = None) -> None:
    """Start again, compare, and go on. `then` looks at what is special about the case."""
    with world.next_life() as (server, dump):
        if then is not None:
            then(server, dump)
        world.go_on(server, decision)


def one_turn(script: str) -> Callable[[World, Server], None]:
    def work(world: World, server: Server) -> None:
        turn = server.submit(server.create(), f"{script} {world.label()}")
        server.until_ended(turn)

    return work


def only_turn(world: World) -> Turn:
    (turn,) = world.turns
    return turn


# ------------------------------------------------------------------------------------------------ an answer


@pytest.mark.parametrize(
    "point",
    [
        *at("session"),
        *at("accept"),
        "answer.written",
        *at("run.started", APPEND),
        *at("append", APPEND, nth=3),
        "event.shown",
        "event.shown:6",
        *at("tool.started", APPEND),
        "tool.before-effect",
        "tool.after-effect",
        *at("tool.finished", APPEND),
        "tool.after-effect:2",
        *at("tool.finished", COMMIT, nth=2),
        *at("terminal", APPEND),
        "event.shown:15",
        *at("settle"),
        "archive.middle",
        *at("archive"),
    ],
)
def test_answer_is_kept_whatever_moment_the_server_dies_at(world: World, point: str) -> None:
    """A1, A2, E2, X1, X2, X3, X5: a turn with reasoning, text and tools, killed at the point, is there as it was
    shown, ended once; continued, it does no finished tool again and says the rest."""
    die_at(world, point, one_turn("tool"))
    come_back(world)


@pytest.mark.parametrize(
    ("point", "status"),
    [
        ("accept.before-commit", None),
        ("accept.after-commit", "interrupted"),
        ("terminal.before-commit", "interrupted"),
        ("terminal.after-commit", "complete"),
        ("settle.before-commit", "complete"),
        ("settle.after-commit", "complete"),
        ("archive.before-commit", "complete"),
    ],
)
def test_status_after_a_crash_says_how_far_the_run_had_come(world: World, point: str, status: str | None) -> None:
    """X2, X3: unanswered is not there, unsealed is interrupted, sealed is complete though nobody had settled it. A
    server that claims nothing shows it."""
    die_at(world, point, one_turn("tool"))
    with world.next_life(max_runs=0) as (_, dump):
        assert [run["status"] for run in dump["runs"].values()] == ([] if status is None else [status])
        assert [s["active_run"] is None for s in dump["sessions"].values()] == [status != "queued"]
    come_back(world)


@pytest.mark.parametrize("decision", ["once", "deny"])
def test_tool_with_unknown_outcome_is_asked_about(world: World, decision: str) -> None:
    """X5: killed between effect and result, the tool is `unknown`; continuing asks first, and only a yes repeats it;
    the tool that had finished before is not run again."""
    die_at(world, "tool.after-effect:2", one_turn("tool"))
    cut = only_turn(world)
    label = cut.text.split()[1]
    with world.next_life() as (server, dump):
        assert [part["state"] for part in dump["messages"][cut.message]["parts"] if part["type"] == "tool"] == [
            "done",
            "unknown",
        ]
        world.repeat_all(server)
        world.finish_all(server)
        again = server.continue_run(cut)
        server.until(again, "approval.requested")
        assert [line.split()[0] for line in world.effects] == [f"{label}-a", f"{label}-b"]
        world.finish_all(server, decision)
        assert ended_as(again, "complete")
        repeated = [f"{label}-b"] if decision == "once" else []
        assert [line.split()[0] for line in world.effects] == [f"{label}-a", f"{label}-b", *repeated]
        world.check(server)


# ------------------------------------------------------------------------------------------------ a question


def a_question(world: World, server: Server) -> None:
    turn = server.submit(server.create(), f"asks {world.label()}")
    server.until(turn, "approval.requested")
    server.until_status(turn, "waiting")
    server.decide(turn, "once")
    server.until_ended(turn)


GOES_ON = {"queued", "running", "complete"}


@pytest.mark.parametrize(
    ("point", "statuses"),
    [
        ("ask.before-commit", {"interrupted"}),
        ("ask.after-commit", {"interrupted"}),
        ("approval.requested.before-commit", {"interrupted"}),
        ("approval.requested.after-commit", {"waiting"}),
        ("approval.requested.before-publish", {"waiting"}),
        ("park.before-commit", {"waiting"}),
        ("park.after-commit", {"waiting"}),
        ("decide.before-commit", {"waiting"}),
        ("decide.after-commit", GOES_ON),
        ("claim.before-commit", GOES_ON),
        ("claim.after-commit", GOES_ON),
        ("run.resumed.before-commit", GOES_ON),
        ("run.resumed.after-commit", {"interrupted"}),
        ("run.resumed.before-publish", {"interrupted"}),
        ("approval.resolved.before-commit", GOES_ON),
        ("approval.resolved.after-commit", {"interrupted"}),
        ("approval.resolved.before-publish", {"interrupted"}),
        ("tool.before-effect", {"interrupted"}),
    ],
)
def test_question_outlives_its_server(world: World, point: str, statuses: set[str]) -> None:
    """X1, X2, X5: a run that waits for a person goes on waiting, an answer that was given is not lost, and no effect
    happens without one."""
    die_at(world, point, a_question)

    def look(server: Server, dump: Any) -> None:
        (run,) = dump["runs"].values()
        assert run["status"] in statuses

    come_back(world, then=look)


# ------------------------------------------------------------------------------------------------ a recovery


def a_dead_server(world: World) -> None:
    """Killed with four runs under way, one of which has a second behind it, and one that waits."""
    with world.life() as server:
        shown = []
        for script in ("hang", "hold", "tokens", "empty", "asks"):
            text = f"{script} {world.label()}" + (" 100000 50" if script == "tokens" else "")
            shown.append(server.submit(server.create(), text))
        server.submit(shown[0].session, f"tool {world.label()}")
        for turn in shown[:3]:
            server.until(turn, "text.delta")
        server.until(shown[3], "run.started")
        server.until(shown[4], "approval.requested")
        server.kill()


@pytest.mark.parametrize(
    "point",
    [
        *at("takeover"),
        *at("fence"),
        *at("terminal", APPEND),
        *at("settle"),
        "archive.middle",
        *at("archive"),
    ],
)
def test_recovery_that_dies_is_recovered(world: World, point: str) -> None:
    """X1, X2, X3: killed in the middle of settling the runs of the life before, the next one settles them, each once,
    with all that was shown; the queued turn runs (A3)."""
    a_dead_server(world)
    die_at(world, point, lambda world, server: None)
    with world.next_life() as (server, _):
        world.repeat_all(server)
        queued = world.turns[-1]
        server.until_ended(queued)
        assert ended_as(queued, "complete") or point.startswith("archive")  # which is late: it may have been claimed
        for turn in world.turns[:4]:
            server.until_ended(turn)
            assert ended_as(turn, "interrupted")
        server.decide(world.turns[4], "once")
        server.until_ended(world.turns[4])
    with world.next_life():
        pass


# ------------------------------------------------------------------------------------------------ a cancel


@pytest.mark.parametrize(
    ("point", "status"),
    [
        ("intent.before-commit", "interrupted"),
        ("intent.after-commit", "cancelled"),
        ("terminal.before-commit", "cancelled"),
        ("terminal.after-commit", "cancelled"),
        ("terminal.before-publish", "cancelled"),
        ("settle.before-commit", "cancelled"),
        ("settle.after-commit", "cancelled"),
    ],
)
def test_cancel_that_was_stored_is_carried_out_by_the_next_life(world: World, point: str, status: str) -> None:
    """C6, C8, X1, X3: one notice, all that was shown; cancelled if the cancel was stored, interrupted if not."""

    def work(world: World, server: Server) -> None:
        turn = server.submit(server.create(), f"hang {world.label()}")
        server.until(turn, "text.delta")
        server.cancel(turn)

    die_at(world, point, work)
    with world.next_life() as (_, dump):
        assert [run["status"] for run in dump["runs"].values()] == [status]


# ------------------------------------------------------------------------------------------------ a queue


@pytest.mark.parametrize(
    "point",
    [
        *at("accept", nth=3),
        *at("claim", nth=2),
        *at("settle", nth=1),
        *at("claim", nth=3),
        *at("settle", nth=2),
    ],
)
def test_queued_turns_survive_and_run_in_order(world: World, point: str) -> None:
    """A1, A3, E2: turns sent to a busy session run after the restart, in the order in which they were sent."""

    def work(world: World, server: Server) -> None:
        sid, gate = server.create(), world.label()
        first = server.submit(sid, f"hold {gate}")
        server.until(first, "text.delta")
        others = [server.submit(sid, f"tool {world.label()}") for _ in range(3)]
        server.ask("open", gate)
        server.until_ended(others[-1])

    die_at(world, point, work)
    with world.next_life() as (server, _):
        for turn in world.turns:  # a gate of the life before is shut again, but its run is over
            server.resend(turn, watch=not turn.ended)
        world.finish_all(server)
        dump = world.check(server)
    started = [dump["runs"][turn.run]["started_at"] for turn in world.turns]
    assert started == sorted(started)
    shown = [m["key"] for m in dump["sessions"][world.ledger.sessions[0]]["shown"] if m["role"] == "user"]
    assert shown == [turn.key for turn in world.turns]
    assert [last(turn) for turn in world.turns].count("run.interrupted") <= 1


def test_interrupting_turn_that_was_stored_takes_over_after_a_crash(world: World) -> None:
    """A3, C6: `on_busy=interrupt` is one step: killed right after it, the run before is cancelled, the new one runs."""

    def work(world: World, server: Server) -> None:
        sid = server.create()
        first = server.submit(sid, f"hang {world.label()}")
        server.until(first, "text.delta")
        server.submit(sid, f"tool {world.label()}", on_busy="interrupt")

    die_at(world, "accept.after-commit:2", work)
    with world.next_life() as (server, _):
        world.repeat_all(server)
        world.finish_all(server)
        assert [last(turn) for turn in world.turns] == ["run.cancelled", "run.complete"]
        world.check(server)


# ------------------------------------------------------------------------------------------------ continuing


@pytest.mark.parametrize(
    "point",
    [
        *at("accept"),
        *at("message.seeded", APPEND),
        *at("terminal"),
        *at("settle"),
    ],
)
def test_continue_can_itself_be_cut_off(world: World, point: str) -> None:
    """A2, X1, X5: a continue that dies is there once or not at all, keeps the seed, and can be continued again."""
    die_at(world, "tool.finished.after-commit", one_turn("tool"))

    def work(world: World, server: Server) -> None:
        cut = only_turn(world)
        server.watch(cut)
        server.until_ended(cut)
        server.until_ended(server.continue_run(cut))

    die_at(world, point, work)
    come_back(world)
    label = world.turns[0].text.split()[1]
    assert [line.split()[0] for line in world.effects].count(f"{label}-a") == 1


def test_automatic_continue_goes_on_with_the_same_run(world: World) -> None:
    """X1, X2, X5: with automatic continue on, the run is never shown as interrupted; a client that reconnects gets
    the rest of the same journal."""
    auto = {"auto_continue": True}
    die_at(world, "tool.finished.after-commit", one_turn("tool"), recovery=auto)
    turn = only_turn(world)
    shown = len(turn.frames)
    with world.life(recovery=auto) as server:
        world.repeat_all(server)
        server.until_ended(turn)
        assert ended_as(turn, "complete")
        assert len(turn.frames) > shown
        assert b"\nevent: run.resumed\n" in b"".join(turn.frames)
        world.check(server)
        server.stop()
    assert not world.violations, world.violations


@pytest.mark.parametrize("point", [*at("terminal", APPEND)[1:], *at("settle")])
def test_automatic_continue_does_not_touch_what_had_ended(world: World, point: str) -> None:
    """X1, X2, rule 4: killed between seal and settle, a run is settled again, not put back into the queue: its end may
    have been shown. A server that claims nothing shows it."""
    auto = {"auto_continue": True}
    die_at(world, point, one_turn("tool"), recovery=auto)
    with world.next_life(recovery=auto, max_runs=0) as (_, dump):
        assert [run["status"] for run in dump["runs"].values()] == ["complete"]


def a_steered_turn(world: World, server: Server) -> None:
    turn = server.submit(server.create(), f"steered {world.label()}")
    server.until_status(turn, "waiting")
    server.steer(turn, f"tokens {world.label()} 3")
    server.decide(turn, "once")
    server.until_ended(turn)


@pytest.mark.parametrize("auto", [False, True])
@pytest.mark.parametrize(
    "point",
    [
        *at("offer"),
        "answer.written:2",
        *at("take"),
        *at("message.steered", APPEND),
        *at("added"),
        *at("takeover"),
        *at("terminal", APPEND),
        *at("settle"),
        *at("terminal", APPEND, nth=2),
        *at("settle", nth=2),
    ],
)
def test_text_that_was_added_to_a_run_is_there_once(world: World, point: str, auto: bool) -> None:
    """A1, A2, X1: killed anywhere between its acceptance and the end of the run, the text is in the answer where the
    model read it, or it is the next message."""
    recovery = {"recovery": {"auto_continue": auto}}
    die_at(world, point, a_steered_turn, **recovery)
    with world.next_life(**recovery) as (server, _):
        world.go_on(server)
        added = [turn for turn in world.turns if turn.steers is not None]
        assert [turn.ended for turn in added] == [True] * len(added)
        assert len(added) == 1 or point == "offer.before-commit"


@pytest.mark.parametrize(
    "point",
    [
        *at("ask"),
        *at("approval.requested", APPEND),
        *at("park"),
        *at("decide"),
        *at("claim"),
        *at("run.resumed", APPEND),
        *at("tool.finished", APPEND),
    ],
)
def test_a_question_of_the_model_outlives_its_server(world: World, point: str) -> None:
    """X1, X5: the run goes on waiting, and an answer that was accepted is the result of the call: it is not asked
    again."""

    def work(world: World, server: Server) -> None:
        turn = server.submit(server.create(), f"questions {world.label()}")
        server.until_status(turn, "waiting")
        server.decide(turn, "once")
        server.until_ended(turn)

    auto = {"recovery": {"auto_continue": True}}
    die_at(world, point, work, **auto)
    answered = point not in ("decide.before-commit",) and not point.startswith(("ask.", "approval.requested.", "park."))
    with world.next_life(**auto) as (server, _):
        before = [turn.decides for turn in world.turns]
        world.go_on(server)
        turn = world.turns[0]
        assert ended_as(turn, "complete")
        assert (turn.decides == before[0]) == answered


@pytest.mark.parametrize("point", ["sweep.middle", *at("sweep")])
def test_sweep_of_the_log_takes_nothing_that_is_needed(world: World, point: str) -> None:
    """X1: rows of settled journals leave the log while others are in use; killed there, all are readable."""

    def work(world: World, server: Server) -> None:
        live = server.submit(server.create(), f"hold {world.label()}")
        server.until(live, "text.delta")
        for _ in range(3):
            server.until_ended(server.submit(server.create(), f"tool {world.label()}"))

    die_at(world, point, work, sweep_at=1)
    come_back(world)


# ------------------------------------------------------------------------------------------------ edits


def two_sessions(world: World, server: Server) -> tuple[Turn, Turn]:
    """Two settled turns, each in its session."""
    turns = [server.submit(server.create(), f"tool {world.label()}") for _ in range(2)]
    for turn in turns:
        server.until_ended(turn)
    return turns[0], turns[1]


@pytest.mark.parametrize("point", at("fork"))
def test_fork_is_there_whole_or_not_at_all(world: World, point: str) -> None:
    """O1, P1: killed while a session is copied, the copy has every message or does not exist; the original is
    untouched."""

    def work(world: World, server: Server) -> None:
        first, _ = two_sessions(world, server)
        server.ask("fork", first.session, first.message)

    die_at(world, point, work)

    def look(server: Server, dump: Any) -> None:
        copies = [session for sid, session in dump["sessions"].items() if sid not in world.ledger.sessions]
        original = dump["sessions"][world.turns[0].session]
        assert len(copies) == (point == "fork.after-commit")
        for copy in copies:
            assert [m["parts"] for m in copy["shown"]] == [m["parts"] for m in original["shown"]]
            assert [m["created_at"] for m in copy["shown"]] == [m["created_at"] for m in original["shown"]]

    come_back(world, then=look)


@pytest.mark.parametrize("point", [*at("clear"), *at("purge"), "purge.middle", *at("purged")])
def test_clear_erases_all_or_nothing_and_finishes_later(world: World, point: str) -> None:
    """O1, P1, X3: killed anywhere between the clear and the last erased journal, the session is whole or empty, and
    the next tick erases what is left, also of the run that was streaming."""

    def work(world: World, server: Server) -> None:
        first, _ = two_sessions(world, server)
        live = server.submit(first.session, f"hang {world.label()}")
        server.until(live, "text.delta")
        world.ledger.gone.add(first.session)
        server.ask("clear", first.session)
        server.ask("tick")
        server.ask("tick")

    die_at(world, point, work)
    gone = next(iter(world.ledger.gone))
    cleared = [turn for turn in world.ledger.turns.values() if turn.session == gone]
    if point == "clear.before-commit":
        world.ledger.gone.clear()
        come_back(world)
        return
    with world.next_life() as (server, _):
        server.ask("tick")
        dump = server.ask("dump", [turn.run for turn in cleared], [turn.message for turn in cleared])
        assert dump["sessions"][gone]["tree"] == []
        assert dump["sessions"][gone]["active_run"] is None
        assert dump["messages"] == {}
        assert all(dump["journals"][turn.run] in ([], "journal-pruned") for turn in cleared)
        fresh = server.submit(gone, f"tool {world.label()}")
        server.until_ended(fresh)
        world.go_on(server)


@pytest.mark.parametrize("point", [*at("delete"), *at("erase"), *at("purge"), "purge.middle", *at("purged")])
def test_delete_hides_at_once_and_erases_in_the_end(world: World, point: str) -> None:
    """O1, X3: killed anywhere between the delete and the last erased journal, the session is there or hidden, and the
    next tick erases what is left; the other session keeps everything."""

    def work(world: World, server: Server) -> None:
        first, _ = two_sessions(world, server)
        world.ledger.gone.add(first.session)
        server.ask("delete", first.session)
        server.ask("tick")

    die_at(world, point, work)
    gone = next(iter(world.ledger.gone))
    (deleted,) = [turn for turn in world.ledger.turns.values() if turn.session == gone]
    if point == "delete.before-commit":
        world.ledger.gone.clear()
        come_back(world)
        return
    with world.next_life() as (server, _):
        with pytest.raises(RefusedError, match="not-found"):
            server.submit(gone, f"tool {world.label()}")
        server.ask("tick")
        dump = server.ask("dump", [deleted.run], [deleted.message, deleted.user_message])
        assert gone not in dump["sessions"]
        assert deleted.run not in dump["runs"]
        assert dump["messages"] == {}
        assert dump["journals"][deleted.run] in ([], "journal-pruned")
        world.go_on(server)


# ------------------------------------------------------------------------------------------------ a budget


def refuses(server: Server) -> bool:
    """Whether the budget refuses another turn."""
    try:
        server.cancel(server.submit(server.create(), "empty refused?"))
    except RefusedError as refused:
        return refused.code == "budget-reached"
    return False


@pytest.mark.parametrize(
    ("point", "used"),
    [
        ("accept.before-commit", 0),
        ("accept.after-commit", 0),
        ("tool.started.before-commit", 0),
        ("tool.started.after-commit", 1000),
        ("tool.after-effect", 1000),
        ("terminal.before-commit", 1000),
        ("terminal.after-commit", 1000),
        ("settle.before-commit", 1000),
        ("settle.after-commit", 1000),
        ("archive.middle", 1000),
    ],
)
def test_a_budget_counts_an_answer_once_whatever_moment_the_server_dies_at(world: World, point: str, used: int) -> None:
    """X3: what the journal holds of the answer's usage counts, once, and the budget outlives its server."""

    def spend(world: World, server: Server) -> None:
        server.ask("budget", 1000)
        one_turn("spends")(world, server)

    die_at(world, point, spend)
    for _ in range(2):
        with world.next_life() as (server, _dump):
            assert server.ask("used") == used
            assert refuses(server) == (used >= 1000)


@pytest.mark.parametrize("point", [*at("delete"), *at("erase"), *at("purge"), *at("purged")])
def test_deleting_a_chat_does_not_free_the_budget_whatever_moment_the_server_dies_at(world: World, point: str) -> None:
    """O1: killed anywhere between the delete and the last erased journal, its answer counts once."""

    def delete(world: World, server: Server) -> None:
        server.ask("budget", 1000)
        turn = server.submit(server.create(), f"spends {world.label()}")
        server.until_ended(turn)
        server.until_status(turn, "complete")
        world.ledger.gone.add(turn.session)
        server.ask("delete", turn.session)
        server.ask("tick")

    die_at(world, point, delete)
    with world.life() as server:
        for _ in range(2):
            assert (server.ask("used"), refuses(server)) == (1000, True)
            server.ask("tick")


# ------------------------------------------------------------------------------------------------ share links


def answered(world: World, server: Server) -> Turn:
    turn = server.submit(server.create(), f"spends {world.label()}")
    server.until_ended(turn)
    server.until_status(turn, "complete")
    return turn


@pytest.mark.parametrize("point", at("share"))
def test_a_share_exists_as_a_whole_or_not_at_all(world: World, point: str) -> None:
    """Its link opens the whole page or nothing, the list agrees, and sharing again works."""
    made: list[Turn] = []

    def share(world: World, server: Server) -> None:
        made.append(answered(world, server))
        server.ask("share", made[0].session, "token")

    die_at(world, point, share)
    with world.next_life() as (server, _dump):
        page, count = server.ask("shared", "token")
        if point == "share.after-commit":
            assert page.endswith("</html>\n")
            assert made[0].text in page
            assert count == 1
        else:
            assert (page, count) == (None, 0)
        server.ask("share", made[0].session, "another")
        assert server.ask("shared", "another")[1] == count + 1
        world.go_on(server)


@pytest.mark.parametrize("point", [*at("delete"), *at("erase"), *at("purge"), *at("purged")])
def test_a_deleted_chat_is_not_shared_whatever_moment_the_server_dies_at(world: World, point: str) -> None:
    """O1: before the delete is committed the link works; from then on it never does."""

    def delete(world: World, server: Server) -> None:
        turn = answered(world, server)
        server.ask("share", turn.session, "token")
        if point != "delete.before-commit":
            world.ledger.gone.add(turn.session)
        server.ask("delete", turn.session)
        server.ask("tick")

    die_at(world, point, delete)
    with world.life() as server:
        for _ in range(2):
            page, count = server.ask("shared", "token")
            if point == "delete.before-commit":
                assert (page is not None, count) == (True, 1)
            else:
                assert (page, count) == (None, 0)
            server.ask("tick")


@pytest.mark.parametrize("point", at("edited"))
def test_an_edited_answer_is_there_once_or_not_at_all(world: World, point: str) -> None:
    """Repeated with the same key after the crash, the edit is made once; the original stays."""
    made: list[Turn] = []

    def edit(world: World, server: Server) -> None:
        made.append(answered(world, server))
        server.ask("edit answer", made[0].session, made[0].message, "better", key="k")

    die_at(world, point, edit)
    with world.life() as server:
        (turn,) = made
        tree = server.ask("dump", [], [])["sessions"][turn.session]["tree"]
        assert [message["reason"] for message in tree].count("edited") == (point == "edited.after-commit")
        ids = {server.ask("edit answer", turn.session, turn.message, "better", key="k")["id"] for _ in range(2)}
        session = server.ask("dump", [], [])["sessions"][turn.session]
        assert {session["head"]} == ids
        assert len(session["tree"]) == 3


# ------------------------------------------------------------------------------------------------ a notification


def sent(world: World, server: Server) -> list[str]:
    """What the push service got, once nothing is left to send."""
    while server.ask("outbox"):
        pass
    file = world.directory / PUSHES
    return file.read_text().splitlines() if file.exists() else []


QUICKLY: Any = {"push_claim": 0.05}


@pytest.mark.parametrize(
    ("point", "kind", "times"),
    [
        ("accept.after-commit", "failed", 1),
        ("terminal.before-commit", "failed", 1),
        ("terminal.after-commit", "done", 1),
        ("settle.before-commit", "done", 1),
        ("settle.after-commit", "done", 1),
        ("push.claimed.before-commit", "done", 1),
        ("push.claimed.after-commit", "done", 1),
        ("push.before-send", "done", 1),
        ("push.after-send", "done", 2),
        ("push.done.before-commit", "done", 2),
        ("push.done.after-commit", "done", 1),
    ],
)
def test_a_notification_is_sent_whatever_moment_the_server_dies_at(
    world: World, point: str, kind: str, times: int
) -> None:
    """X3: about the status that the run has in the end, once, or again with the same tag."""

    def work(world: World, server: Server) -> None:
        server.ask("subscribe")
        one_turn("tokens")(world, server)
        sent(world, server)

    die_at(world, point, work, **QUICKLY)
    with world.next_life(**QUICKLY) as (server, dump):
        (rid,) = dump["runs"]
        assert sent(world, server) == [f"{rid} {kind}"] * times
    come_back(world)


@pytest.mark.parametrize("point", [*at("ask"), *at("park"), "push.before-send", "push.after-send"])
def test_a_question_is_told_whatever_moment_the_server_dies_at(world: World, point: str) -> None:
    """X5: a run that waits was reported, once per question or again with the same tag; before it asks, it was not."""

    def work(world: World, server: Server) -> None:
        server.ask("subscribe")
        a_question(world, server)

    die_at(world, point, work, **QUICKLY)
    with world.next_life(**QUICKLY) as (server, dump):
        told = sent(world, server)
        (run,) = dump["runs"].values()
        questions = {line.split()[0] for line in told if line.endswith(" approval")}
        ends = [line for line in told if not line.endswith(" approval")]
        if run["status"] == "waiting":
            assert (questions, ends) == ({each["id"] for each in server.ask("questions", run["id"])}, [])
        else:
            assert set(ends) == {f"{run['id']} failed"}
    come_back(world)
