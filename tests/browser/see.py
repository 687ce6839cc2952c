"""What a person sees on the page, and what the API says it should be."""

import json
import re
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Locator, Page, expect

from tests.http.client import Served

GUARD_MS: Final = 30_000
expect.set_options(timeout=GUARD_MS)

_READ: Final = """articles => articles.map(article => ({
  who: article.getAttribute("aria-label"),
  text: [...article.querySelectorAll(".said, .prose")]
    .filter(part => !part.closest(".reasoning")).map(part => part.innerText).join(" "),
  tools: [...article.querySelectorAll("section[aria-label^='Tool ']")].map(tool => tool.getAttribute("aria-label")),
  notices: article.querySelectorAll("[aria-label='Notice']").length,
}))"""


AXE: Final = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"


def axe(page: Page) -> list[Any]:
    """What axe finds wrong with the page as it is."""
    page.evaluate("() => Promise.all(document.getAnimations().map(a => { try { a.finish() } catch {} }))")
    page.evaluate(AXE.read_text())
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    return [
        (item["id"], [(node["target"], node["failureSummary"]) for node in item["nodes"]])
        for item in found["violations"]
    ]


def message_box(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Message", exact=True)


def send(page: Page, script: Any) -> None:
    """Type what the scripted agent is to do, and press Send."""
    message_box(page).fill(script if isinstance(script, str) else json.dumps(script))
    button(page, "Send").click()


def button(page: Page | Locator, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def answers(page: Page) -> Locator:
    return page.get_by_role("article", name="Assistant")


def session_of(page: Page) -> str:
    page.wait_for_url(re.compile(r"/c/"))
    return page.url.rpartition("/")[2]


def seen(page: Page) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.get_by_role("article").evaluate_all(_READ)
    return [{**item, "text": _squeeze(item["text"])} for item in found]


def told(server: Served, sid: str) -> list[dict[str, Any]]:
    """The same, from the API."""
    return [
        {
            "who": "You" if message["role"] == "user" else "Assistant",
            "text": _squeeze(" ".join(part["text"] for part in message["parts"] if part["type"] == "text")),
            "tools": [f"Tool {part['name']}" for part in message["parts"] if part["type"] == "tool"],
            "notices": int(message["status"] not in ("complete", "streaming")),
        }
        for message in server.messages(sid)
    ]


def _squeeze(text: str) -> str:
    return " ".join(text.split())


def finished(page: Page) -> None:
    """The shown run has ended, and the page knows: Stop is gone and nothing is busy."""
    expect(button(page, "Stop")).to_have_count(0)
    expect(page.locator("article[aria-busy=true]")).to_have_count(0)


def same(page: Page, server: Served, sid: str) -> None:
    """The visible transcript equals the API's."""
    wanted = told(server, sid)
    expect(page.get_by_role("article")).to_have_count(len(wanted))
    page.wait_for_function(  # the Markdown renderer arrives by itself
        "() => !document.querySelector('.prose > .plain')", timeout=GUARD_MS
    )
    assert seen(page) == wanted
