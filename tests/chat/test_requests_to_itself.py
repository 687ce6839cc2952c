"""Requests that the server is made to send to itself, by the settings of a model or of an MCP server."""

from tests.chat.model_server import PROVIDER, ScriptedModelServer
from tests.http.conftest import Start
from tests.servers import free_port
from tests.upstream import says


def test_a_model_whose_url_is_the_server_itself_is_not_the_person(start: Start, up: ScriptedModelServer) -> None:
    """The server answers itself no more than any other program that it runs."""
    port = free_port()
    own = {"base_url": f"http://127.0.0.1:{port}/v1", "models": [f"{PROVIDER}/inner"]}
    there = {"base_url": up.url, "api_key_env": "TEST_API_KEY", "models": ["default"]}
    up.play("inner", says("Never said."))
    served = start(port=port, more={"providers": {PROVIDER: there, "own": own}})
    sid = served.session()
    run = served.ended(served.begin(sid, "Go", model=f"own/{PROVIDER}/inner"))
    assert (run["status"], run["error"]["code"]) == ("failed", "auth")
    assert 'method="POST",status="403"' in served.http.get("/metrics").text
    assert [item["id"] for item in served.get("/api/sessions")["items"]] == [sid]


def test_an_mcp_server_whose_url_is_the_server_itself_is_not_the_person(start: Start) -> None:
    """A POST of the MCP client reaches no route."""
    served = start(port=(port := free_port()))
    served.call("PUT", "/api/mcp/own", {"url": f"http://localhost:{port}/api/sessions"}, 204)
    tried = served.post("/api/mcp/own/test", {}, 200)
    assert not tried["ok"]
    assert 'method="POST",status="403"' in served.http.get("/metrics").text
    assert 'method="POST",status="422"' not in served.http.get("/metrics").text
