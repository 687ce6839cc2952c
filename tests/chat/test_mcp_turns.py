"""Whole turns with a real MCP server: what it shows the model, asks the person, and lets the model do."""

import base64
import json
import sys
from pathlib import Path
from typing import Any

from tests.chat.model_server import PROVIDER, ScriptedModelServer, calls
from tests.chat.test_tool_admin import logged_in
from tests.http.client import Served
from tests.http.conftest import Start
from tests.tools.test_mcp import PROGRAM
from tests.tools.test_mcp_oauth import private_server
from tests.upstream import says

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


def begin(start: Start, up: ScriptedModelServer, tmp_path: Path) -> Served:
    program = {"command": sys.executable, "args": [PROGRAM, str(tmp_path / "effects")]}
    provider = {"base_url": up.url, "api_key_env": "TEST_API_KEY", "abilities": ["tools", "images"]}
    return start(more={"mcp": {"t": program}, "tools": {"t__*": "allow"}, "providers": {PROVIDER: provider}})


def question(served: Served, rid: str, number: int = 1) -> Any:
    """The number-th question of a running tool."""
    with served.watch(rid) as stream:
        return [stream.until("input.requested").data for _ in range(number)][-1]


def test_a_turn_with_images_questions_and_sampling(start: Start, up: ScriptedModelServer, tmp_path: Path) -> None:
    """X5: the image reaches the model in this turn and, the same, in the next; the page has it as a file. The form goes
    to the person and back to the server; the model writes for the server after the person agreed."""
    served = begin(start, up, tmp_path)
    up.play(
        "shown",
        calls(("c1", "t__show", {})),
        calls(("c2", "t__book", {})),
        calls(("c3", "t__recite", {})),
        says("Low tide."),
        says("Done."),
    )
    sid = served.session(title="Images")
    rid = served.begin(sid, "Go", model=f"{PROVIDER}/shown")
    form = question(served, rid)
    assert (form["server"], form["kind"], form["message"]) == ("t", "form", "Which berth?")
    assert served.run(rid)["status"] == "waiting"
    path = f"/api/runs/{rid}/inputs/{form['request_id']}"
    assert served.post(path, {"action": "accept", "content": {"nights": 2}}, 422)["field"] == "content.name"
    served.post(path, {"action": "accept", "content": {"name": "North 4", "nights": 2}}, 200)
    served.post(path, {"action": "decline"}, 409)
    asked = question(served, rid, 2)
    assert asked["kind"] == "sampling"
    assert "A haiku about tides." in asked["message"]
    served.post(f"/api/runs/{rid}/inputs/{asked['request_id']}", {"action": "accept"}, 200)
    assert served.ended(rid)["status"] == "complete"

    sampled = up.asked("shown", 4)
    assert [message["content"] for message in sampled["messages"]] == ["Be brief.", "A haiku about tides."]
    assert "tools" not in sampled
    answer = served.answer(sid)["parts"]
    tools = {part["call_id"]: part["result"] for part in answer if part["type"] == "tool"}
    assert json.loads(tools["c2"]) == {"name": "North 4", "nights": 2}
    assert tools["c3"].startswith("Low tide.")
    (file,) = [part for part in answer if part["type"] == "file"]
    assert (file["call_id"], file["media_type"]) == ("c1", "image/png")
    assert base64.b64encode(served.http.get(f"/api/files/{file['file_id']}/content").content).decode() == PNG

    before = up.asked("shown", 5)["messages"]
    image = before[4]["content"][1]
    assert (before[4]["role"], image["image_url"]["url"]) == ("user", f"data:image/png;base64,{PNG}")
    served.kill()
    served = begin(start, up, tmp_path)
    assert served.ended(served.begin(sid, "Again", model=f"{PROVIDER}/shown"))["status"] == "complete"
    assert up.asked("shown", 6)["messages"][1 : len(before)] == before[1:], "after a restart, the same"


def test_prompts_are_listed_and_filled_in_over_the_api(start: Start, up: ScriptedModelServer, tmp_path: Path) -> None:
    """U1: the message box offers them; a prompt that its server cannot fill in says why."""
    served = begin(start, up, tmp_path)
    (prompt,) = served.get("/api/mcp/prompts")["items"]
    assert (prompt["server"], prompt["name"], prompt["arguments"][0]["name"]) == ("t", "passage", "port")
    filled = served.post("/api/mcp/t/prompts", {"prompt": "passage", "arguments": {"port": "Brest"}}, 200)
    assert filled["text"].startswith("From Brest by dinghy.")
    served.post("/api/mcp/t/prompts", {"prompt": "passage"}, 502)
    served.post("/api/mcp/nobody/prompts", {"prompt": "passage"}, 404)


def test_a_person_signs_in_to_a_private_server(start: Start, tmp_path: Path) -> None:
    """DESIGN §9: the authorization page leads back here; tokens are in the key file, are never returned, and go when
    the address changes or the person signs out."""
    served = logged_in(start())
    keys = served.data_dir / "keys.json"
    with private_server(tmp_path / "log") as url:
        served.call("PUT", "/api/mcp/private", {"url": url}, 204)
        assert "Press Connect" in served.post("/api/mcp/private/test", {}, 200)["reason"]
        for again in (False, True):
            page = served.post("/api/mcp/private/sign-in", {}, 200)["authorization_url"]
            back = served.http.get(page, follow_redirects=False).headers["location"]
            assert back.startswith(f"{served.url}/api/mcp/callback?")
            assert served.http.get(f"{served.url}/api/mcp/callback?state=forged&code=x").status_code == 400
            done = served.http.get(back)
            assert (done.status_code, "Connected" in done.text) == (200, True)
            assert served.http.get(back).status_code == 400, "an answer counts once"
            assert served.post("/api/mcp/private/test", {}, 200)["ok"]
            listed = served.http.get("/api/mcp")
            (info,) = listed.json()["items"]
            assert (info["can_sign_in"], info["signed_in"]) == (True, True)
            assert "access-" in keys.read_text()
            assert "access-" not in listed.text
            if again:
                served.call("PUT", "/api/mcp/private", {"url": f"{url}/elsewhere"}, 204)
            else:
                served.call("DELETE", "/api/mcp/private/sign-in", None, 204)
            assert "access-" not in keys.read_text()
            assert not served.get("/api/mcp")["items"][0]["signed_in"]
