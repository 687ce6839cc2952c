"""C7 for the model on this machine: how long its process goes on computing after a cancel. What is asserted is
generous; the figures are printed (`pytest -s`)."""

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from holdfast.models import local_model_weights
from holdfast.models.local_model import LOCAL_ID
from tests.chat.model_server import KEY
from tests.chat.test_cancel import TIMES, moment_of, report
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import GUARD, until

DIRECTORY = local_model_weights.default_directory(os.environ, Path.home())
QUIET = 0.5
"""Seconds without a computation after which it is over."""
LONG = "The quick brown fox jumps over the lazy dog and runs into the deep dark forest. " * 150

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processor time as Linux shows it"),
    pytest.mark.skipif(
        local_model_weights.find(DIRECTORY) is None, reason="the weights are not here: holdfast models pull"
    ),
]


@pytest.mark.parametrize("moment", ["while it reads", "while it speaks"])
def test_cancel_stops_the_local_model(moment: str, start: Start) -> None:
    """C7 C5: it stops within a batch of the prompt, or with the token that is under way, and is free for the next."""
    served, took = start(environment={"HOLDFAST_MODELS_DIR": str(DIRECTORY)}), []
    sid = served.session(title="A person's", model=LOCAL_ID)
    assert served.turn(sid, "Say hi.")["status"] == "complete"  # it is loaded now
    pid = worker(served)
    for _ in range(TIMES):
        sid = served.session(title="A person's", model=LOCAL_ID)
        before = computed(pid)
        rid = served.begin(sid, LONG if moment == "while it reads" else "Tell me a very long story about a fox.")
        if moment == "while it reads":
            until(lambda was=before: computed(pid) - was > 0.1)  # type: ignore[misc]
        else:
            with served.watch(rid) as stream:
                stream.until("text.delta")
        quiet = moment_of(lambda: rests(pid))
        began = time.monotonic()
        assert served.cancel(rid)["status"] == "cancelled"
        took.append(quiet() - QUIET - began)
        assert bool(served.answer(sid)["parts"]) == (moment == "while it speaks")
    report(f"the local model, {moment}", took)
    assert worker(served) == pid


def worker(served: Served) -> int:
    children = Path(f"/proc/{served.process.pid}/task/{served.process.pid}/children").read_text().split()
    (found,) = [int(pid) for pid in children if b"local_model_worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return found


def computed(pid: int) -> float:
    """Seconds of processor time over all threads."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def rests(pid: int) -> None:
    """Wait until it has computed next to nothing for a while."""
    ends_at, pause = time.monotonic() + GUARD, threading.Event()
    before, since = computed(pid), time.monotonic()
    while (now := time.monotonic()) - since < QUIET:
        pause.wait(0.005)  # a busy loop would take the processor from what is measured
        assert now < ends_at, "it goes on"
        if (done := computed(pid)) - before > 0.002:
            before, since = done, now


def test_the_process_of_the_local_model_knows_no_keys(start: Start) -> None:
    """A command could read its environment, so that it is given what a command is given."""
    served = start(environment={"HOLDFAST_MODELS_DIR": str(DIRECTORY)})
    assert served.turn(served.session(title="A person's", model=LOCAL_ID), "Say hi.")["status"] == "complete"
    environment = Path(f"/proc/{worker(served)}/environ").read_bytes()
    assert b"PATH=" in environment
    assert KEY.encode() not in environment
