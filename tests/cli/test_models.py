"""Commands that show or choose models, beside a server with real agents."""

import json

from tests.chat.conftest import chat_forker, up
from tests.chat.conftest import shared as chatting
from tests.cli.terminal import Terminal, holdfast, refused
from tests.http.client import Served

__all__ = ["chat_forker", "chatting", "up"]


def test_an_unknown_model_is_refused(chatting: Served) -> None:
    """A model of no known provider is refused before anything is stored; a provider may have unlisted models."""
    before = chatting.get("/api/sessions")["items"]
    for name in ("nope/x", "nope"):
        message = f"Unknown model {name}. See `holdfast models list`."
        refused("chat", "--model", name, "hi", data=chatting.data_dir, code=2, message=message)
    assert chatting.get("/api/sessions")["items"] == before
    assert holdfast("chat", "--model", "testing/unlisted", "hi", data=chatting.data_dir).stdout == b"Fine.\n"


def test_the_model_is_shown(chatting: Served) -> None:
    """An interactive chat says which model answers."""
    with Terminal("chat", data=chatting.data_dir) as terminal:
        terminal.until("Model: testing/default")
        terminal.quit("/quit\n")


def test_the_doctor_asks_the_running_server(chatting: Served) -> None:
    """The models are those of the server, not those of the shell that runs the command."""
    findings = json.loads(holdfast("doctor", "--json", data=chatting.data_dir).stdout)["findings"]
    (models,) = [each["text"] for each in findings if each["what"] == "models"]
    assert "available in the running server, default testing/default" in models
