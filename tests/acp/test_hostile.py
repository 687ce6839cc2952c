"""Programs that misbehave: the run ends, says why, keeps what was shown, and the server goes on."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.acp.test_turns import _children
from tests.chat.conftest import settings
from tests.chat.model_server import ScriptedModelServer
from tests.fork_server import ServerForker
from tests.http.client import Served
from tests.http.streams import until

PROGRAM: Final = Path(__file__).with_name("hostile_program.py")
GOES_WELL: Final = (
    "garbage",
    "garbage first",
    "bad updates",
    "half lines",
    "duplicate tools",
    "huge text",
    "huge tool",
    "flood",
    "deep",
    "large values",
    "many requests",
    "half characters",
    "ignores signals",
    "another session",
    "50 MB of output",
)
FAILS: Final = {
    "half line": ("agent-gone", "last words"),
    "dies": ("agent-gone", "status 5"),
    "dies in tool": ("agent-gone", "last words"),
    "dies at question": ("agent-gone", "last words"),
    "closes output": ("agent-gone", "ended unexpectedly"),
    "many values": ("agent-gone", "too many values"),
    "long line": ("agent-gone", "more than 2 MB"),
    "stderr flood": ("agent-gone", "eeee"),
    "dies at start": ("agent-gone", "last words"),
    "dies at new": ("agent-gone", "last words"),
    "silent": ("agent-gone", "did not answer within"),
    "another version": ("agent-version", "version 9"),
    "no session id": ("agent", "without an id"),
    "error": ("agent", "Internal error"),
    "error with data": ("agent", "answered session/prompt with an error: Internal error: No credits left."),
    "no initialize": ("agent", "answered initialize with an error: Internal error: Set API_KEY first."),
    "odd ways to log in": ("agent-login", "Authentication required. Log in with the program itself."),
    "endless garbage": ("agent-gone", "It sent 10,000 lines in a row that are no messages"),
    "open tools": ("agent", "more than 30 tools"),
    "too much text": ("limit", "4 MB"),
    "cancels itself": ("agent-cancelled", "stopped by itself"),
    "50 MB in a line": ("agent-gone", "more than 2 MB"),
}
ASKED: Final = ("one id for two questions", "question with bad options", "dies after permission")
OTHERS: Final = (
    *ASKED,
    "many questions",
    "question after cancel",
    "question after the end",
    "dies at cancel",
    "dies at load",
    "duplicate answers",
    "stops reading",
    "endless replay",
    "request flood",
    "silent when tested",
)


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, chat_forker: ServerForker, up: ScriptedModelServer
) -> Iterator[Served]:
    """One server for all of them: none may spoil it for the others."""
    directory = tmp_path_factory.mktemp("hostile")
    command = ["-I", "-S", str(PROGRAM)]
    agents = {
        _slug(name): {"command": sys.executable, "args": [*command, name, str(directory / _slug(name))]}
        for name in (*GOES_WELL, *FAILS, *OTHERS)
    }
    limits = {
        "startup": 10.0,
        "load": 1.0,
        "cancel_grace": 0.3,
        "max_line": 2 * 2**20,
        "max_waiting": 50,
        "max_programs": 100,
        "max_open_calls": 30,
    }
    changes = settings(up, more={"agents": agents}, program_limits=limits, engine={"max_output": 4 * 2**20})
    with Served(chat_forker, directory / "data", **changes) as server:
        yield server.ready()
        assert "Traceback" not in server.complaints, server.complaints


def _slug(name: str) -> str:
    return name.replace(" ", "-").lower()


def effects(served: Served, behaviour: str) -> list[str]:
    """What the program did with permission, a line each."""
    file = served.data_dir.parent / _slug(behaviour)
    return file.read_text().splitlines() if file.exists() else []


def begin(served: Served, behaviour: str) -> tuple[str, str]:
    sid = served.session(agent=_slug(behaviour), title="A person's")
    return sid, served.begin(sid, "go")


def shown(frames: list[Any]) -> str:
    return "".join(frame.data["text"] for frame in frames if frame.event == "text.delta")


def stored(served: Served, sid: str) -> str:
    return "".join(part["text"] for part in served.answer(sid)["parts"] if part["type"] == "text")


@pytest.mark.parametrize("behaviour", GOES_WELL)
def test_what_is_not_understood_is_skipped(served: Served, behaviour: str) -> None:
    """X1: the answer has what could be understood, to its end, and what was shown is what is stored."""
    sid, rid = begin(served, behaviour)
    frames = served.events(rid)
    run = served.run(rid)
    assert (run["status"], run["error"]) == ("complete", None)
    text = stored(served, sid)
    assert text == shown(frames)
    assert text.startswith("Hello. ")
    assert text.endswith("Bye.")
    assert "another session" not in text


@pytest.mark.parametrize("behaviour", FAILS)
def test_a_failure_says_why_and_keeps_what_was_shown(served: Served, behaviour: str) -> None:
    """E1, X1: the run fails with a code and the program's last words; a tool that was announced is *unknown*."""
    sid, rid = begin(served, behaviour)
    frames = served.events(rid)
    run = served.run(rid)
    code, words = FAILS[behaviour]
    assert (run["status"], run["error"]["code"]) == ("failed", code), run["error"]
    assert words in run["error"]["message"]
    assert stored(served, sid) == shown(frames)
    states = [part["state"] for part in served.answer(sid)["parts"] if part["type"] == "tool"]
    assert set(states) <= {"unknown"}
    assert "{" not in run["error"]["message"]


@pytest.mark.parametrize(("size", "reason"), [(30, None), (33, "It sent a message of more than 32 MB")])
def test_a_line_may_have_32_mb(
    tmp_path: Path, chat_forker: ServerForker, up: ScriptedModelServer, size: int, reason: str | None
) -> None:
    """X1: without another limit, a line of 30 MB is read, and the result in it is shortened; a longer one ends the
    program."""
    arguments = ["-I", "-S", str(PROGRAM), f"{size} MB in a line"]
    agents = {"agents": {"large": {"command": sys.executable, "args": arguments}}}
    with Served(chat_forker, tmp_path / "data", **settings(up, more=agents)) as served:
        sid = served.ready().session(agent="large", title="A person's")
        run = served.ended(served.begin(sid, "go"))
        (part,) = [part for part in served.answer(sid)["parts"] if part["type"] == "tool"]
        if reason is None:
            assert (run["status"], part["state"], part["result"][-8:]) == ("complete", "done", " the end")
        else:
            assert (run["error"]["code"], part["state"]) == ("agent-gone", "unknown")
            assert reason in run["error"]["message"]


def test_requests_over_the_limit_are_refused(served: Served) -> None:
    """X5: a program with many open requests gets an error for the next one, and its answer is read to the end."""
    sid, rid = begin(served, "many requests")
    assert served.ended(rid)["status"] == "complete"
    assert stored(served, sid) == "Hello. 100: More than 200 requests are open. Bye."


def test_half_characters_are_replaced(served: Served) -> None:
    """X5: a name that UTF-8 cannot carry does not make the options of an agent unreadable, in no later chat either."""
    sid, rid = begin(served, "half characters")
    assert served.ended(rid)["status"] == "complete"
    for where in (f"?session_id={sid}", ""):
        (option,) = served.get(f"/api/agents/half-characters/options{where}")["options"]
        assert (option["name"], option["choices"][0]["name"]) == ("n?", "?A")


def test_large_values_of_a_call_are_not_kept(served: Served) -> None:
    """X5: arguments and results beyond the limit are replaced by a note."""
    sid, rid = begin(served, "large values")
    assert served.ended(rid)["status"] == "complete"
    (part,) = [part for part in served.answer(sid)["parts"] if part["type"] == "tool"]
    assert part["args"]["x"][0] == "y" * 10
    assert part["result"] == "The output is too large to be shown."


def test_tests_of_programs_are_limited_and_end_with_their_clients(served: Served) -> None:
    """X5: of many tests of a program that never answers a few are begun, the others are refused; when their clients
    leave, their programs end, and others can be tested."""
    path = "/api/agents/silent-when-tested/test"
    with ThreadPoolExecutor(10) as clients:
        tests = [clients.submit(httpx.post, served.url + path, timeout=2.0) for _ in range(10)]
        refused = [each.result() for each in tests if each.exception() is None]
    assert [answer.status_code for answer in refused] == [429] * 7
    until(lambda: served.http.post("/api/agents/garbage-first/test").status_code, lambda status: status == 200)
    assert not [line for line in _command_lines() if f"{PROGRAM}\0silent when tested".encode() in line]


def _command_lines() -> list[bytes]:
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(process.read_bytes())
    return found


def test_questions_are_asked_one_after_another_and_closed_by_cancel(served: Served) -> None:
    """X5, C6: of several questions at once one is shown; a cancel ends the run and the program that waits."""
    _, rid = begin(served, "many questions")
    until(lambda: served.run(rid)["status"], lambda status: status == "waiting")
    assert served.cancel(rid)["status"] == "cancelled"
    events = [frame.event for frame in served.events(rid)]
    assert events.count("approval.requested") == 1


@pytest.mark.parametrize("behaviour", ["stops reading", "question after cancel", "dies at cancel", "request flood"])
def test_cancel_ends_a_program_that_does_not_answer(served: Served, behaviour: str) -> None:
    """C6, C7: a program that does not read, asks when it is cancelled, dies of it, or asks for more than it reads, is
    ended after the grace period, and has no permission."""
    sid, rid = begin(served, behaviour)
    with served.watch(rid) as stream:
        stream.until("text.delta")
    assert served.cancel(rid)["status"] == "cancelled"
    assert stored(served, sid) == "Hello. "
    assert "approval.requested" not in [frame.event for frame in served.events(rid)]
    assert effects(served, behaviour) == []


@pytest.mark.parametrize("behaviour", ["endless replay", "dies at load"])
def test_a_session_that_does_not_load_is_given_up(served: Served, behaviour: str) -> None:
    """X5: a session that does not stop loading, or kills the program, is left for a new one; nothing of the replay is
    in the journal."""
    before = _children(served)
    sid, rid = begin(served, behaviour)
    assert served.ended(rid)["status"] == "complete"
    until(lambda: _children(served) <= before)  # the program has ended, and the server knows
    again = served.begin(sid, "go on")
    assert served.ended(again)["status"] == "complete"
    assert stored(served, sid) == "Hello. Bye."


def test_a_second_answer_to_a_prompt_is_ignored(served: Served) -> None:
    """C6: the first answer ends the turn; what comes later changes no message."""
    sid, rid = begin(served, "duplicate answers")
    assert served.ended(rid)["status"] == "complete"
    assert stored(served, sid) == "Hello. "


def answer_next(served: Served, rid: str, number: int, decision: str) -> None:
    """Wait for question `number` and answer it."""
    with served.watch(rid) as stream:
        question = [stream.until("approval.requested").data for _ in range(number)][-1]
    served.post(f"/api/runs/{rid}/approvals/{question['approval_id']}", {"decision": decision})


def test_two_questions_with_one_id_are_two_questions(served: Served) -> None:
    """X5: each is shown and answered; what was denied did not run, what was allowed ran once."""
    _, rid = begin(served, "one id for two questions")
    answer_next(served, rid, 1, "deny")
    answer_next(served, rid, 2, "once")
    assert served.ended(rid)["status"] == "complete"
    assert effects(served, "one id for two questions") == ["same"]


def test_options_that_are_none_cannot_be_chosen(served: Served) -> None:
    """X5: a question without a usable option that allows is answered with *cancelled*, whatever the person decides."""
    _, rid = begin(served, "question with bad options")
    for number in range(1, 5):
        answer_next(served, rid, number, "once")
    assert served.ended(rid)["status"] == "complete"
    assert effects(served, "question with bad options") == []


def test_a_program_that_dies_after_permission_has_acted_once(served: Served) -> None:
    """X3, X5: what was allowed is *unknown*, and is not done again by itself."""
    sid, rid = begin(served, "dies after permission")
    answer_next(served, rid, 1, "once")
    assert served.ended(rid)["error"]["code"] == "agent-gone"
    assert [part["state"] for part in served.answer(sid)["parts"] if part["type"] == "tool"] == ["unknown"]
    assert effects(served, "dies after permission") == ["q1"]


def test_a_question_after_the_end_is_nobodys(served: Served) -> None:
    """X5: outside of a turn nobody is asked, and nothing is allowed."""
    sid, rid = begin(served, "question after the end")
    assert served.ended(rid)["status"] == "complete"
    assert served.ended(served.begin(sid, "go on"))["status"] == "complete"
    assert "approval.requested" not in [frame.event for frame in served.events(rid)]
    assert effects(served, "question after the end") == []
