"""A data directory of an earlier version opens, answers as it did, and goes on."""

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chat.conftest import settings
from tests.chat.model_server import PROVIDER, ScriptedModelServer, serve_model
from tests.chat.questions import decide
from tests.compat.answers import UNREMEMBERED, missing, read_all, session, settle
from tests.compat.write_fixture import RULES
from tests.fork_server import ForkServer, ServerForker
from tests.http.client import Served
from tests.http.streams import said
from tests.upstream import says

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures").glob("data-dir-*.tar.xz"))


@pytest.fixture(scope="module")
def up() -> Iterator[ScriptedModelServer]:
    with serve_model() as running:
        running.play("cut", says("jumps over the lazy dog."))
        running.play("asks", says("Thank you."))
        running.play("busy", says("jumps over the lazy dog."))
        yield running


@pytest.fixture(scope="module", params=FIXTURES, ids=lambda path: path.name)
def opened(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    fork_server: ForkServer,
    up: ScriptedModelServer,
) -> Iterator[Any]:
    """A server on a copy of the directory, and what was recorded about it."""
    directory = tmp_path_factory.mktemp("old")
    with tarfile.open(request.param) as archive:
        archive.extractall(directory, filter="data")
    recorded = json.loads((directory / "answers.json").read_text())
    how = settings(up, RULES, retention_days=0, starts_at=recorded["written_at"] + 1)
    with Served(ServerForker(fork_server, "tests.compat.server"), directory / "data", **how) as served:
        served.ready().http.headers["Authorization"] = f"Bearer {recorded['token']}"
        settle(served)
        yield served, recorded


def test_answers_what_the_earlier_version_answered(opened: tuple[Served, Any]) -> None:
    """Every session, message, run, event, file, setting and fact is read as the version that wrote it read it, also
    what a crash had left open."""
    served, recorded = opened
    assert list(missing(recorded["answers"], read_all(served, recorded["written_at"]))) == []


def test_password_still_counts(opened: tuple[Served, Any]) -> None:
    """The stored password logs in, another one does not, and nobody comes in without."""
    served, recorded = opened
    anonymous = {"Authorization": ""}
    served.call("GET", "/api/sessions", expect=401, headers=anonymous)
    served.post("/api/login", {"password": "wrong"}, 401, headers=anonymous)
    served.post("/api/login", {"password": recorded["password"]}, 204, headers=anonymous)
    served.http.cookies.clear()


def test_interrupted_run_is_continued(opened: tuple[Served, Any]) -> None:
    """A run that was killed in mid-answer goes on after the words that had been shown."""
    served, _ = opened
    sid = session(served, "Open: cut")["id"]
    run = served.post(f"/api/runs/{served.answer(sid)['run_id']}/continue", expect=202)["run"]
    assert served.ended(run["id"])["status"] == "complete"
    assert said(served.answer(sid)) == "The quick brown fox jumps over the lazy dog."


def test_open_approval_is_answered(opened: tuple[Served, Any]) -> None:
    """The question that was open is answered, its tool runs, and the answer ends."""
    served, _ = opened
    sid = session(served, "Asks")["id"]
    rid = served.answer(sid)["run_id"]
    decide(served, rid, "once")
    assert served.ended(rid)["status"] == "complete"
    tool = next(part for part in served.answer(sid)["parts"] if part["type"] == "tool")
    assert tool["state"] == "done", tool
    assert "allowed" in tool["result"], tool


def test_new_message_is_answered_and_found(opened: tuple[Served, Any], up: ScriptedModelServer) -> None:
    """An old session takes a new turn, whose words are found by search beside the old ones."""
    served, _ = opened
    sid = session(served, "Tides")["id"]
    served.ended(served.begin(sid, "And the ebb?", model=f"{PROVIDER}/new"))
    assert [message["role"] for message in served.messages(sid)] == ["user", "assistant"] * 2
    assert [item["id"] for item in served.get("/api/sessions?query=ebb")["items"]] == [sid]


def test_turns_not_yet_remembered_are_committed(opened: tuple[Served, Any], up: ScriptedModelServer) -> None:
    """M11: a turn that the earlier version had not committed to memory was committed when the directory was opened."""
    served, _ = opened
    assert "I play the cello." in str(up.asked("listens", job="memory"))
    assert served.get(f"/api/sessions/{session(served, UNREMEMBERED)['id']}/memory")["committed_turns"] == 1
