"""C7 as the other end sees it: when its connection or its process goes. The figures are printed (`pytest -s`); what is
asserted is generous, because the machine may be busy."""

import os
import select
import socket
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.chat.model_server import PROVIDER, ScriptedModelServer, calls
from tests.chat.questions import begin, decide
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import GUARD, said, until
from tests.upstream import Hang, Head, delta, sse

BOUND = GUARD / 2
"""Seconds. Without a cancel, each of these would go on for much longer."""
TIMES = int(os.environ.get("HOLDFAST_TEST_TIMES", "3"))

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="watches processes as Linux shows them")


def report(what: str, seconds: list[float]) -> None:
    """From the moment before the cancel was sent to the moment at which the other end saw it."""
    milliseconds = sorted(second * 1000 for second in seconds)
    print(f"\nC7 {what}: median {statistics.median(milliseconds):.1f} ms, worst {milliseconds[-1]:.1f} ms")
    assert max(seconds) < BOUND, f"{what}: {seconds}"


@pytest.mark.parametrize(
    ("moment", "script", "shown"),
    [
        ("before the head", [Hang()], ""),
        ("before the first byte", [Head(), Hang()], ""),
        ("in mid-stream", [Head(), *sse(delta(content="Half an ")), Hang()], "Half an "),
    ],
)
def test_cancel_closes_the_upstream_connection(
    moment: str, script: Any, shown: str, shared: Served, up: ScriptedModelServer
) -> None:
    """C7 C5 C8: cancel does not wait for the next chunk; the upstream sees its connection closed at once."""
    model, took = f"cancel {moment}", []
    up.play(model, script)
    for n in range(1, TIMES + 1):
        sid, rid = begin(shared, model, "Hello")
        up.asked(model, n)
        if shown:
            with shared.watch(rid) as stream:
                stream.until("text.delta")
        began = time.monotonic()
        assert shared.cancel(rid)["status"] == "cancelled"
        took.append(up.closed(model, n) - began)
        answer = shared.answer(sid)
        assert (said(answer), answer["status"], answer["error"]) == (shown, "cancelled", None)
        assert bool(answer["parts"]) == bool(shown)
    report(moment, took)


@linux
def test_cancel_while_connecting(start: Start) -> None:
    """C7: a connection that is still being made is given up at once."""
    with deaf() as port:
        provider = {"base_url": f"http://127.0.0.1:{port}/v1", "models": ["deaf"]}
        served = start(more={"providers": {PROVIDER: provider}})
        took = []
        for _ in range(TIMES):
            _, rid = begin(served, "deaf", "Hello")
            with served.watch(rid) as stream:
                stream.until("step.started")
            until(lambda: connecting(port))
            given_up = moment_of(lambda: no_longer_connecting(port))
            began = time.monotonic()
            assert served.cancel(rid)["status"] == "cancelled"
            took.append(given_up() - began)
        report("while connecting", took)


@contextmanager
def deaf() -> Iterator[int]:
    """A port that takes no connection: its queue is full, so that a new one waits for an answer to its SYN."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = []
        for _ in range(4):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
            waiting.append(one)
        try:
            yield listener.getsockname()[1]
        finally:
            for one in waiting:
                one.close()


def connecting(port: int) -> int:
    """How many connections to the port are still being made, those of `deaf` itself left out."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    mine = {os.fstat(int(fd)).st_ino for fd in os.listdir("/proc/self/fd") if _is_socket(fd)}
    return sum(row[2].endswith(f":{port:04X}") and row[3] == "02" and int(row[9]) not in mine for row in rows)


def no_longer_connecting(port: int) -> None:
    ends_at, pause = time.monotonic() + GUARD, threading.Event()
    while connecting(port):
        assert time.monotonic() < ends_at, "it still tries"
        pause.wait(0.002)  # a busy loop would hold up the client that cancels


def _is_socket(fd: str) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{fd}").startswith("socket:")
    except OSError:
        return False


COMMAND = "sleep 1000 & echo $!; setsid sleep 1001 & echo $!; trap '' TERM; echo $$; while :; do sleep 1002; done"


@linux
def test_cancel_ends_a_shell_command_with_its_children(start: Start, up: ScriptedModelServer) -> None:
    """C7 C3: the command, its children, one that left its session and one that ignores SIGTERM are gone."""
    up.play("cancel shell", calls(("c1", "shell", {"command": COMMAND}), text="I run. "))
    served, took = start(more={"shell": {"sandbox": "off"}}), []  # in the sandbox, process ids are others
    for _ in range(TIMES):
        sid, rid = begin(served, "cancel shell", "Run it")
        decide(served, rid, "once")
        pids = printed(served, rid, 3)
        ended = gone(pids)
        began = time.monotonic()
        assert served.cancel(rid)["status"] == "cancelled"
        took.append(ended() - began)
        text, tool = served.answer(sid)["parts"]
        assert (text["text"], tool["state"]) == ("I run. ", "unknown")
        assert [int(pid) for pid in tool["output"].split()] == pids
    report("a shell command", took)


def printed(served: Served, rid: str, lines: int) -> list[int]:
    text = ""
    with served.watch(rid) as stream:
        while text.count("\n") < lines:
            frame = stream.until("tool.delta")
            text += frame.data.get("output_delta") or ""
    return [int(pid) for pid in text.split()]


def gone(pids: list[int]) -> Callable[[], float]:
    """When the last of these processes ended."""
    handles = [os.pidfd_open(pid) for pid in pids]

    def watch() -> None:
        for handle in handles:
            assert select.select([handle], [], [], GUARD)[0]
            os.close(handle)

    return moment_of(watch)


def moment_of(wait: Callable[[], object]) -> Callable[[], float]:
    """Waits in a thread from now on; called, it says when that was over."""
    ended: list[float] = []

    def watch() -> None:
        wait()
        ended.append(time.monotonic())

    thread = threading.Thread(target=watch)
    thread.start()

    def when() -> float:
        thread.join(GUARD)
        assert ended, "it did not happen"
        return ended[0]

    return when
