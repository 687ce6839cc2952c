"""`holdfast agents` beside a server whose agent programs answer in different ways."""

import json
import sys
from collections.abc import Iterator

import pytest

from tests.acp.test_hostile import PROGRAM
from tests.chat.conftest import chat_forker, settings, up
from tests.chat.model_server import ScriptedModelServer
from tests.cli.terminal import holdfast, ok
from tests.fork_server import ServerForker
from tests.http.client import Served

__all__ = ["chat_forker", "up"]


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, chat_forker: ServerForker, up: ScriptedModelServer
) -> Iterator[Served]:
    agents = {
        name: {"command": sys.executable, "args": ["-I", "-S", str(PROGRAM), name.replace("-", " ")]}
        for name in ("well", "needs-a-login", "no-session-id", "dies-at-start")
    }
    nowhere = {"PATH": "/nowhere"}
    changes = settings(up, more={"agents": agents}, environment=nowhere)
    with Served(chat_forker, tmp_path_factory.mktemp("agents") / "data", **changes) as server:
        yield server.ready()


def test_agents_are_listed_with_the_reason_why_one_is_missing(served: Served) -> None:
    """For people as a table, for programs as JSON."""
    lines = {
        line.split()[0]: " ".join(line.split()) for line in ok("agents", "list", data=served.data_dir).splitlines()
    }
    assert lines["well"] == "well program available"
    assert lines["chat"] == "chat built in available"
    assert lines["goose"].startswith("goose program goose was not found on the PATH.")
    found = json.loads(ok("agents", "list", "--json", data=served.data_dir))["items"]
    assert {item["name"]: item["available"] for item in found}.items() >= {"well": True, "goose": False}.items()


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("well", 0, ["well answered after", "Supports: load sessions."]),
        ("needs-a-login", 1, ["needs-a-login answered after", "Login required.", "Log in with the program itself"]),
        ("no-session-id", 1, ["answered after", "opened a session without an id"]),
        ("dies-at-start", 1, ["ended unexpectedly", "last words"]),
        ("goose", 1, ["goose was not found on the PATH"]),
    ],
)
def test_a_test_says_what_is_missing(served: Served, name: str, code: int, words: list[str]) -> None:
    """What the program supports, whether it needs a login, and why it cannot be used; only what can be used is a
    success."""
    done = holdfast("agents", "test", name, data=served.data_dir)
    said = " ".join(done.stderr.decode().split())
    assert done.returncode == code, said
    assert [each for each in words if each not in said] == []
    tested = json.loads(holdfast("agents", "test", name, "--json", data=served.data_dir).stdout)
    assert tested["login_required"] == (name == "needs-a-login")
