"""`holdfast chat`: with a server, without one, and across server crashes."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.cli import server_connection
from holdfast.cli.exit_codes import ConnectionLostError, exit_code_of
from holdfast.cli.http_client import ApiClient
from holdfast.core.user_questions import SKIPPED
from holdfast.server_file import ServerAddress
from tests.cli.terminal import Terminal, as_json, holdfast, ok
from tests.http.client import Served
from tests.http.conftest import Start
from tests.servers import LossyRelay


def script(*actions: dict[str, Any]) -> str:
    return json.dumps(actions)


def shown(data: Path) -> list[dict[str, Any]]:
    """The messages of the newest session."""
    [session] = as_json("sessions", "list", "--limit", 1, data=data)
    found: list[dict[str, Any]] = as_json("sessions", "show", session["id"], data=data)["messages"]
    return found


def text(message: dict[str, Any]) -> str:
    return "".join(part["text"] for part in message["parts"] if part["type"] == "text")


def test_a_question_is_answered_and_kept(shared: Served) -> None:
    """With a running server, only text goes to stdout; tools and notes go to stderr."""
    asked = script({"think": "hm"}, {"call": "c1", "name": "search", "args": {"q": 1}}, {"say": "At six."})
    done = holdfast("chat", asked, data=shared.data_dir)
    assert (done.returncode, done.stdout.decode()) == (0, "At six.\n")
    assert "search" in done.stderr.decode()
    assert [message["status"] for message in shown(shared.data_dir)] == ["complete", "complete"]


def test_without_a_server_the_directory_is_opened(data: Path) -> None:
    """Without a server the command opens the directory itself, and the next command sees its session."""
    assert ok("chat", "hello", data=data) == "hello\n"
    assert [text(message) for message in shown(data)] == ["hello", "hello"]


def test_what_is_piped_in_is_asked(shared: Served) -> None:
    """`… | holdfast chat "do this"` asks both, the question first."""
    assert ok("chat", "Read:", data=shared.data_dir, stdin=b"some words\n") == "Read:\n\nsome words\n"
    assert holdfast("chat", data=shared.data_dir).returncode == 2


def test_a_failed_answer_keeps_what_came(shared: Served) -> None:
    """E1: the partial text and the reason are printed, and the exit code is 1."""
    done = holdfast("chat", script({"say": "half"}, {"fail": ["provider", "It is down."]}), data=shared.data_dir)
    assert (done.returncode, done.stdout.decode()) == (1, "half\n")
    assert "It is down." in done.stderr.decode()


def test_ctrl_c_stops_the_answer_and_keeps_it(shared: Served) -> None:
    """C2: Ctrl-C cancels the run and returns to the prompt; Ctrl-D quits."""
    with Terminal("chat", data=shared.data_dir) as terminal:
        terminal.until("you> ")
        terminal.enter(script({"think": "hmm"}, {"say": "partial answer"}, {"hang": True}))
        terminal.until("hmm")
        terminal.until("partial answer")
        terminal.interrupt()
        terminal.until("Stopped. The partial answer is saved.")
        terminal.until("you> ")
        terminal.enter("and now")
        terminal.until("and now")
        terminal.until("you> ")
        terminal.say("\x04")
        terminal.until(f"To continue this session: holdfast chat --data-dir {shared.data_dir} --session")
        assert terminal.end() == 0
    messages = shown(shared.data_dir)
    assert [message["status"] for message in messages] == ["complete", "cancelled", "complete", "complete"]
    assert text(messages[1]) == "partial answer"


def test_ctrl_c_at_the_prompt_leaves(shared: Served) -> None:
    """At the prompt, Ctrl-C quits."""
    with Terminal("chat", data=shared.data_dir) as terminal:
        terminal.until("you> ")
        terminal.interrupt()
        assert terminal.end(press="\x03") == 0


def test_ctrl_c_stops_a_single_question(data: Path) -> None:
    """Without a server too, the partial answer is saved and the exit code is 130."""
    with Terminal("chat", script({"say": "some"}, {"hang": True}), data=data) as terminal:
        terminal.until("some")
        terminal.interrupt()
        terminal.until("Stopped. The partial answer is saved.")
        assert terminal.end() == 130
    assert [(message["status"], text(message)) for message in shown(data)][1] == ("cancelled", "some")


def test_permission_is_asked_in_the_terminal(shared: Served) -> None:
    """Approvals are asked at the prompt: allowed once, then denied, also with the letters of earlier versions."""
    with Terminal("chat", data=shared.data_dir) as terminal:
        for answer, state in (("x\ny\n", "done"), ("n\n", "denied"), ("o\n", "done"), ("d\n", "denied")):
            terminal.until("you> ")
            terminal.enter(script({"call": state, "name": "shell", "args": "ls", "asks": True}, {"say": "ok"}))
            terminal.until("? shell ls: The tool needs approval.")
            terminal.until("Allow? [y]es once, [s]ession, [a]lways, [n]o: ")
            terminal.say(answer)
            terminal.until("Denied" if state == "denied" else "Allowed")
        terminal.quit("/quit\n")
    tools = [part for message in shown(shared.data_dir) for part in message["parts"] if part["type"] == "tool"]
    assert [tool["state"] for tool in tools] == ["done", "denied"] * 2


def test_a_question_of_the_model_is_answered_in_the_terminal(shared: Served) -> None:
    """By the number of an option, by text, or not at all; what is no answer is asked for again."""
    asked = {"question": "Which port?", "options": ["80", "8080"]}
    only = {**asked, "allow_text": False}
    with Terminal("chat", data=shared.data_dir) as terminal:
        for args, answer in ((asked, "2\n"), (asked, "the usual one\n"), (asked, "\n"), (only, "443\n1\n")):
            terminal.until("you> ")
            terminal.enter(script({"call": "q", "name": "ask_user", "args": args, "asks_user": True}, {"say": "ok"}))
            terminal.until("? Which port?")
            terminal.until("2. 8080")
            terminal.until("Answer (number or text; empty to skip): ")
            terminal.say(answer)
            if args is only:
                terminal.until("must be one of the options")
            terminal.until("ok")
        terminal.quit("/quit\n")
    tools = [part for message in shown(shared.data_dir) for part in message["parts"] if part["type"] == "tool"]
    assert [tool["result"] for tool in tools] == ["8080", "the usual one", SKIPPED, "80"]


def test_a_call_that_needs_approval_is_shown_as_it_will_run(shared: Served) -> None:
    """Arguments cannot hide in characters that are invisible or reorder the line, nor beyond the terminal's width."""
    command = "ls \u202e\u2066\u200b\U000e0041" + "x" * 1_200 + "; rm é\u200d"
    asked = script({"call": "c1", "name": "shell", "args": command, "asks": True}, {"say": "ok"})
    with Terminal("chat", asked, data=shared.data_dir) as terminal:
        terminal.until("? shell ls \\u202e\\u2066\\u200b\\u{e0041}xxx")
        terminal.until("; rm é\u200d: The tool needs approval.")
        terminal.until("[n]o: ")
        terminal.say("d\n")
        terminal.until("Denied")
        assert terminal.end() == 0


def test_without_a_terminal_a_question_waits(shared: Served) -> None:
    """Without a terminal the run waits and the exit code is 5; a later chat in a terminal answers it."""
    asked = script({"say": "first "}, {"call": "c1", "name": "shell", "asks": True}, {"say": "then"})
    done = holdfast("chat", asked, data=shared.data_dir)
    assert (done.returncode, done.stdout.decode()) == (5, "first \n")
    [session] = as_json("sessions", "list", "--limit", 1, data=shared.data_dir)
    with Terminal("chat", "--session", session["id"], data=shared.data_dir) as terminal:
        terminal.until("first")
        terminal.until("Allow? ")
        terminal.say("once\n")
        terminal.until("then")
        terminal.quit()
    assert text(shown(shared.data_dir)[1]) == "first then"


def test_a_killed_server_is_waited_for(start: Start) -> None:
    """X1: the server dies in mid-answer and comes back elsewhere: what was shown is not shown again, the end is told,
    and the conversation goes on, at the new address."""
    server = start()
    with Terminal("chat", data=server.data_dir) as terminal:
        terminal.until("you> ")
        terminal.enter(script({"say": "before the crash "}, {"hang": True}))
        terminal.until("before the crash")
        server.kill()
        terminal.until("Connection to the server lost.")
        again = start()
        terminal.until("Reconnected.")
        assert "before the crash" not in terminal.until("Interrupted by a server restart.")
        terminal.until("you> ")
        terminal.enter("still there")
        terminal.until("still there")
        terminal.quit()
    messages = shown(again.data_dir)
    assert [message["status"] for message in messages] == ["complete", "interrupted", "complete", "complete"]
    assert text(messages[1]) == "before the crash "


def test_an_interrupted_answer_goes_on(start: Start) -> None:
    """X5: /continue resumes an interrupted answer without repeating its tool calls."""
    server = start()
    gate = script({"call": "c1", "name": "search"}, {"say": "one "}, {"meet": "half"}, {"say": "two"})
    with Terminal("chat", data=server.data_dir) as terminal:
        terminal.until("you> ")
        terminal.enter(gate)
        terminal.until("one")
        server.kill()
        again = start()
        again.order(open="half")
        terminal.until("Interrupted")
        terminal.until("you> ")
        terminal.say("/continue\n")
        terminal.until("two")
        terminal.quit()
    assert text(shown(again.data_dir)[1]) == "one two"
    assert (again.data_dir / "effects").read_text() == "c1\n"


def test_a_server_that_stops_in_order_is_waited_for(start: Start) -> None:
    """The stream of a draining server ends without a terminal event; the next server delivers the rest."""
    server = start(drain=0.0)
    with Terminal("chat", script({"say": "shown"}, {"hang": True}), data=server.data_dir) as terminal:
        terminal.until("shown")
        assert server.terminate() == 0
        start()
        terminal.until("Interrupted")
        assert terminal.end() == 1


@pytest.mark.parametrize("request_line", [b"POST /api/sessions/", b"GET /api/runs/"], ids=["send", "stream"])
def test_an_answer_that_is_lost_doubles_nothing(server: Served, request_line: bytes) -> None:
    """A2: if the response to a stored turn is lost, sending again creates no second turn."""
    file = server.data_dir / "server.json"
    with closing(LossyRelay(server.url, request_line)) as relay:
        file.write_text(json.dumps({**json.loads(file.read_text()), "url": relay.url}))
        done = holdfast("chat", "hello", data=server.data_dir)
        assert relay.lost.is_set()
    assert (done.returncode, done.stdout) == (0, b"hello\n")
    if request_line.startswith(b"POST"):  # a lost answer to a reading call is asked for again by the client library
        assert "Connection lost. Reconnected." in done.stderr.decode()
    assert len(server.call("GET", "/api/runs")["items"]) == 1
    [session] = server.call("GET", "/api/sessions")["items"]
    messages = server.call("GET", f"/api/sessions/{session['id']}/messages")["items"]
    assert [message["role"] for message in messages] == ["user", "assistant"]


def test_a_server_that_stays_away_is_given_up(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the reconnect timeout the command exits with 4."""
    monkeypatch.setattr(server_connection, "RECONNECT_TIMEOUT", 0.3)

    async def lost() -> None:
        async with ApiClient(ServerAddress("http://127.0.0.1:9", "token")) as client:
            await server_connection.ServerConnection(client, data / "server.json", lambda _: None).reconnect(
                ConnectionLostError("It is gone.")
            )

    with pytest.raises(ConnectionLostError, match=r"It is gone\. It did not come back") as caught:
        anyio.run(lost)
    assert exit_code_of(caught.value) == 4


def test_what_a_model_says_cannot_steer_the_terminal(shared: Served) -> None:
    """Control characters are removed from model output."""
    done = holdfast("chat", script({"say": "a\x1b]0;title\x07b\x1b[2Jc"}), data=shared.data_dir)
    assert done.stdout == b"a]0;titleb[2Jc\n"
