"""`make screenshots`: every screen, light and dark, desktop and phone, into build/screenshots. Those that the README
and the guides show are copied to docs/pictures. `python -m tests.browser.screenshots settings chat` takes only some."""

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

from tests.browser.conftest import CHROMIUM, missing_requirement
from tests.browser.demo_server import ANSWERS
from tests.browser.test_agents import COMMANDS, OFFERS, OPTIONS, update
from tests.fork_server import Fresh
from tests.http.client import Served

ROOT: Final = Path(__file__).parents[2]
OUT: Final = ROOT / "build" / "screenshots"
README: Final = (
    *("chat-desk-light", "chat-desk-dark", "compare-desk-light", "recorder-desk-light", "activity-desk-dark"),
    *("tools-desk-dark", "chat-phone-light", "drawer-phone-dark", "approval-phone-light"),
    *("agent-desk-light", "agent-approval-phone-light"),  # of the guide about agents
    "usage-desk-light",  # of the guide about usage
    "share-desk-light",  # of the guide about sharing
    "project-desk-light",  # of the guide about projects
)
SIZES: Final = {"desk": (1280, 840), "phone": (360, 740)}
WORKING: Final = "Rename the lamp module and run the tests"
ASKING: Final = "Remove the old logs"
UNANSWERED: Final = "Publish the charts"
AGENT_TURNS: Final[dict[str, list[Any]]] = {
    UNANSWERED: [
        {"say": "The charts are built. I would publish them with one command."},
        {"ask": {"toolCallId": "t1", "kind": "execute", "title": "make publish"}, "options": OPTIONS, "quiet": True},
        {"say": "I did not publish them, because I was not allowed to."},
    ],
    WORKING: [
        {"think": "The module is imported in two places."},
        update(
            "plan",
            entries=[
                {"content": "Rename lamp.py to light.py", "status": "completed", "priority": "high"},
                {"content": "Change both imports", "status": "completed", "priority": "medium"},
                {"content": "Run the tests", "status": "in_progress", "priority": "medium"},
            ],
        ),
        update(
            "tool_call",
            toolCallId="t1",
            title="Change both imports",
            kind="edit",
            content=[
                {"type": "diff", "path": "tower/main.py", "oldText": "import lamp", "newText": "import light"},
                {
                    "type": "diff",
                    "path": "tower/night.py",
                    "oldText": "from lamp import on",
                    "newText": "from light import on",
                },
            ],
            locations=[{"path": "tower/main.py", "line": 3}, {"path": "tower/night.py", "line": 1}],
            status="completed",
        ),
        {"call": "create_terminal", "params": {"command": "echo '4 passed in 0.12s'"}},
        update("tool_call", toolCallId="t2", title="pytest -q", kind="execute"),
        update("tool_call_update", toolCallId="t2", content=[{"type": "terminal", "terminalId": "term_1"}]),
        {"call": "wait_for_terminal_exit", "params": {"terminal_id": "term_1"}},
        update("tool_call_update", toolCallId="t2", status="completed"),
        update("usage_update", used=38_000, size=200_000, cost={"amount": 0.0312, "currency": "USD"}),
        {"usage": [12_400, 860]},
        {"say": "The module is now called `light`, and all **4 tests pass**."},
    ],
    ASKING: [
        {"say": "There are 31 log files from last year. I would remove them."},
        {"ask": {"toolCallId": "t1", "kind": "execute", "title": "rm logs/2025-*"}, "options": OPTIONS},
    ],
}


class DemoSessions:
    """Sessions with something to show."""

    def __init__(self, server: Served, home: Path) -> None:
        self.server = server
        titles = ("Tide table for Brest", "Publish the site", "Minutes, in short", "The brochure in Breton", "Knots")
        self.sessions: dict[str, str] = {}
        self.runs: dict[str, str] = {}
        for prompt, title in reversed(list(zip(ANSWERS, titles, strict=False))):
            sid = server.session(title=title)
            self.sessions[title] = sid
            self.runs[title] = server.send(sid, prompt)["run"]["id"]
            with server.watch(self.runs[title]) as stream:
                while (frame := stream.next()) is not None:
                    if frame.event == "approval.requested" or "Kêr-Vrest" in str(frame.data):
                        break
        aside = server.session(title="Packing list")
        for said in ("I live in Brest and I love sailing.", "I prefer short answers."):
            server.events(server.send(aside, said)["run"]["id"])
        server.post(f"/api/sessions/{aside}/memory/commit", {})
        server.call("PATCH", f"/api/sessions/{aside}", {"archived": True})
        server.call("PATCH", f"/api/sessions/{self.sessions['Knots']}", {"pinned": True})

        for kind, days in (("recording", 30), ("text", None)):
            body = {"kind": kind, "expires_in_days": days, "tools": kind == "recording"}
            server.post(f"/api/sessions/{self.sessions['Knots']}/shares", body, 201)
        server.call("PATCH", "/api/prices", {"prices": {"house/atlas-large": {"input": 3, "output": 15}}}, 200)
        monthly = {"period": "month", "unit": "usd", "limit": 20, "action": "warn"}
        daily = {"period": "day", "unit": "tokens", "limit": 20_000, "action": "refuse"}
        server.set_budgets(monthly, daily, time_zone="Europe/Paris")
        self._make_projects()
        self._start_agents(home)

    def _make_projects(self) -> None:
        instructions = (
            "Answer like a harbor master: short, in the 24-hour clock, with the height of the tide in meters."
        )
        harbor = {"color": "teal", "instructions": instructions, "temperature": 0.3, "memory": "project"}
        self.server.post("/api/projects", {"name": "Harbor office", **harbor}, 201)
        self.server.post("/api/projects", {"name": "Winter reading", "color": "purple"}, 201)
        for name in ("tides-2027.csv", "mooring rules.txt"):
            sent = {"file": (name, b"Brest, 6.2 m\n" * 400, "text/plain")}
            file = self.server.http.post("/api/files", files=sent).json()
            self.server.post("/api/projects/Harbor office/files", {"file_id": file["id"]})
        for title in ("Tide table for Brest", "The brochure in Breton"):
            self.server.call("PATCH", f"/api/sessions/{self.sessions[title]}", {"project": "Harbor office"})
        self.server.post("/api/memory", {"text": "The pilot boat is on channel 8.", "project": "Harbor office"}, 201)

    def _start_agents(self, home: Path) -> None:
        """A chat with an agent program that asks, one whose question nobody answered, and one at its end."""
        project = home / "lighthouse"
        project.mkdir()
        (home / "offers").write_text(json.dumps(OFFERS))
        (home / "commands").write_text(json.dumps(COMMANDS))
        for title, actions in AGENT_TURNS.items():
            agent = "goose" if title == UNANSWERED else "hermes"
            chosen = {"agent_options": {"mode": "edit"}, "cwd": str(project)}
            sid = self.sessions[title] = self.server.session(title=title, agent=agent, **chosen)
            (home / "next").write_text("@@" + json.dumps(actions))
            rid = self.runs[title] = self.server.send(sid, title)["run"]["id"]
            with self.server.watch(rid) as stream:
                while (frame := stream.next()) is not None:
                    if frame.event == "approval.requested" and title == ASKING:
                        break

    def paths(self) -> dict[str, str]:
        return {
            "agent": f"/c/{self.sessions[WORKING]}",
            "agent-approval": f"/c/{self.sessions[ASKING]}",
            "agent-unanswered": f"/c/{self.sessions[UNANSWERED]}",
            "agent-options": f"/c/{self.sessions[WORKING]}",
            "agent-picker": "/",
            "agents": "/settings#tools",
            "home": "/",
            "chat": f"/c/{self.sessions['Tide table for Brest']}",
            "approval": f"/c/{self.sessions['Publish the site']}",
            "failed": f"/c/{self.sessions['Minutes, in short']}",
            "streaming": f"/c/{self.sessions['The brochure in Breton']}",
            "recorder": f"/runs/{self.runs['Tide table for Brest']}",
            "activity": "/activity",
            "project": "/projects/Harbor%20office",
            "project-settings": "/projects/Harbor%20office",
            "projects": "/projects",
            "chat-settings": f"/c/{self.sessions['Tide table for Brest']}",
            "share": f"/c/{self.sessions['Tide table for Brest']}",
            "sharing": "/settings#sharing",
            "chat-defaults": "/settings#chat-defaults",
            "settings": "/settings",
            "tools": "/settings#tools",
            "memory": "/settings#memory",
            "usage": "/settings#usage",
            "palette": "/",
            "drawer": "/",
            "login": "/login",
            "compare": "/compare",
        }


def main(wanted: Sequence[str]) -> int:
    reason = missing_requirement()
    if reason is not None:
        print(f"No pictures: {reason}", file=sys.stderr)
        return 1
    if not wanted:
        shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        settings = _agent_programs(Path(directory))
        with Served(Fresh("tests.browser.demo_server"), Path(directory) / "data", **settings) as server:
            server.ready().post("/api/setup/done", expect=204)
            sessions = DemoSessions(server, Path(directory))
            for scheme in ("light", "dark"):
                for size in SIZES:
                    _take(browser, sessions, scheme, size, wanted)
        browser.close()
    (ROOT / "docs" / "pictures").mkdir(exist_ok=True)
    for name in README if not wanted else ():
        shutil.copy(OUT / f"{name}.png", ROOT / "docs" / "pictures" / f"{name}.png")
    print(f"{len(list(OUT.iterdir()))} pictures in {OUT}")
    return 0


def _agent_programs(directory: Path) -> dict[str, Any]:
    """Puts `hermes` and `goose` on the PATH, which both are the scripted program; goose does not wait for long."""
    script = f"#!/bin/sh\ncd {ROOT} && exec {sys.executable} -m tests.acp.scripted_program {directory}\n"
    (directory / "bin").mkdir()
    for name in ("hermes", "goose"):
        (directory / "bin" / name).write_text(script)
        (directory / "bin" / name).chmod(0o700)
    os.environ["PATH"] = f"{directory / 'bin'}:{os.environ['PATH']}"
    return {"agents": {"goose": {"answer_within": 1.5}}, "agent_directories": [str(directory)]}


def _take(
    browser: Browser, sessions: DemoSessions, scheme: Literal["light", "dark"], size: str, wanted: Sequence[str]
) -> None:
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    context.route(re.compile(r"/api/usage\?by=day"), _month_of_usage)
    page = context.new_page()
    for name, path in sessions.paths().items():
        if (wanted and name not in wanted) or (name == "drawer" and size != "phone"):
            continue
        page.goto(sessions.server.url + path)
        _prepare(page, name)
        page.screenshot(path=OUT / f"{name}-{size}-{scheme}.png")
    context.close()


def _month_of_usage(route: Route) -> None:
    """The report of the demo server has one day, so the days before it are added."""
    report = route.fetch().json()
    for n, day in enumerate(report["items"][:-1]):
        runs = (n * 7) % 11 if n % 7 < 5 else 0
        given, said = runs * (9000 + 900 * (n % 4)), runs * (700 + 150 * (n % 3))
        numbers = {"runs": runs, "input_tokens": given, "output_tokens": said, "seconds": runs * 41.0}
        cost = {"cost": given * 3e-6 + said * 15e-6, "estimated_cost": given * 3e-6 + said * 15e-6} if runs else {}
        for target in (day, report["total"]):
            for field, value in {**numbers, **cost}.items():
                target[field] = (target[field] or 0) + value
    route.fulfill(json=report)


def _prepare(page: Page, name: str) -> None:
    """Prepare the screen, and wait until everything is loaded."""
    if name == "compare":
        page.get_by_label("Model 1").select_option(label="Atlas Large")
        page.get_by_label("Model 2").select_option(label="Breeze Small")
        page.get_by_role("textbox", name="Prompt").fill("Write one sentence about the sea.")
        page.get_by_role("button", name="Compare", exact=True).click()
        expect(page.get_by_role("button", name="Open in chat")).to_have_count(2)
    if name == "palette":
        expect(page.get_by_role("textbox", name="Message")).to_be_visible()
        page.keyboard.press("Control+k")
        expect(page.get_by_role("combobox", name="Search chats and commands")).to_be_focused()
    if name == "drawer":
        page.get_by_role("button", name="Open sidebar").click()
    if name == "agent-options":
        page.get_by_role("button", name="Agent options").click()
        expect(page.get_by_role("combobox", name="Mode", exact=True)).to_be_visible()
    if name == "agent-picker":
        page.get_by_role("button", name="Model: ").click()
        page.get_by_role("combobox", name="Search models and agents").press("End")
    if name == "agent":
        for tool in ("edit", "execute"):
            page.get_by_role("region", name=f"Tool {tool}").get_by_role("button").click()
        page.get_by_role("region", name="Conversation").evaluate("box => { box.scrollTop = box.scrollHeight }")
    if name == "agents":
        page.get_by_role("button", name="Test: hermes").click()
        expect(page.get_by_role("status").filter(has_text="Scripted")).to_be_visible()
    if name == "chat-settings":
        page.get_by_role("button", name="Chat settings").click()
        page.get_by_role("textbox", name="System prompt").fill("Answer like a harbour master.")
        page.get_by_role("spinbutton", name="Temperature").fill("0.3")
        page.get_by_role("checkbox", name="Use memory").uncheck()
        page.get_by_role("button", name="Save").click()
        page.get_by_role("button", name="Chat settings (changed)").click()
        expect(page.get_by_role("dialog", name="Chat settings")).to_be_visible()
    if name == "share":
        page.get_by_role("main").get_by_role("button", name="Options for Tide table for Brest").click()
        page.get_by_role("menuitem", name="Share").click()
        expect(page.get_by_role("dialog", name="Share chat")).to_be_visible()
    if name == "project-settings":
        page.get_by_role("button", name="Edit", exact=True).first.click()
        expect(page.get_by_role("dialog", name="Project settings")).to_be_visible()
    if name == "usage":
        expect(page.get_by_role("img", name="Tokens per day")).to_be_visible()
    if name in ("settings", "tools", "memory", "usage", "agents", "chat-defaults", "sharing"):
        expect(page.get_by_text("Server is healthy")).to_have_count(1)
        page.evaluate("() => document.getElementById(location.hash.slice(1))?.scrollIntoView()")
    if name in ("chat", "recorder"):
        expect(page.locator(".katex").first).to_be_visible()
        expect(page.locator(".hljs-keyword").first).to_be_visible()
    if name == "chat":
        page.get_by_role("region", name="Tool edit_file").get_by_role("button").click()
        page.get_by_role("region", name="Conversation").evaluate("box => { box.scrollTop = 1 }")
    if name == "recorder":
        page.get_by_role("region", name="Timeline").get_by_title(re.compile("^shell:")).click()
    page.wait_for_load_state("networkidle") if name == "login" else page.wait_for_timeout(400)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
