"""Page actions and checks: send a message, wait for the answer, compare the visible transcript with the API."""

import json
import re
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Locator, Page, expect

from tests.http.client import Served

GUARD_MS: Final = 30_000
expect.set_options(timeout=GUARD_MS)

_READ_TRANSCRIPT: Final = """articles => articles.map(article => ({
  who: article.getAttribute("aria-label"),
  text: [...article.querySelectorAll("[data-part=text]")]
    .filter(part => !part.closest("[aria-label=Reasoning]")).map(part => part.innerText).join(" "),
  tools: [...article.querySelectorAll("section[aria-label^='Tool ']")].map(tool => tool.getAttribute("aria-label")),
  notices: article.querySelectorAll("[aria-label='Notice']").length,
}))"""
_RUN_AXE: Final = """async options => {
  for (const animation of document.getAnimations()) try { animation.finish() } catch {}
  return (await axe.run(document, {resultTypes: ["violations"], ...options})).violations;
}"""
_AXE: Final = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"


def axe_violations(page: Page) -> list[Any]:
    """The accessibility violations that axe finds on the page as it is, in light and dark."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(_AXE.read_text())
    found = page.evaluate(_RUN_AXE, {})
    page.emulate_media(color_scheme="dark")
    found += page.evaluate(_RUN_AXE, {"runOnly": ["color-contrast"]})  # the scheme changes nothing else
    page.emulate_media(color_scheme="light")
    return [(item["id"], [(node["target"], node["failureSummary"]) for node in item["nodes"]]) for item in found]


def start_chatting(page: Page) -> None:
    """Leave the first screen of a new server, which has found a model."""
    button(page, "Start chatting").click()


def message_box(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Message", exact=True)


def button(page: Page | Locator, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def answers(page: Page) -> Locator:
    return page.get_by_role("article", name="Assistant")


def notice(page: Page) -> Locator:
    return page.get_by_role("note", name="Notice")


def send(page: Page, script: Any, shows: str | None = None) -> None:
    """Send what the scripted agent is to do, and wait until the newest answer shows the text."""
    message_box(page).fill(script if isinstance(script, str) else json.dumps(script))
    button(page, "Send").click()
    if shows is not None:
        expect(answers(page).last).to_contain_text(shows)


def record_most(page: Page, selector: str) -> None:
    """Keep the largest number of matching elements that any frame showed in `window.most`."""
    page.evaluate(
        """selector => {
            window.most = 0;
            const look = () => {
                window.most = Math.max(window.most, document.querySelectorAll(selector).length);
                requestAnimationFrame(look);
            };
            look();
        }""",
        selector,
    )


def session_of(page: Page) -> str:
    page.wait_for_url(re.compile(r"/c/"))
    return page.url.rpartition("/")[2]


def wait_idle(page: Page) -> None:
    """The shown run has ended, and the page knows: Stop is gone and nothing is busy."""
    expect(button(page, "Stop")).to_have_count(0)
    expect(page.locator("article[aria-busy=true]")).to_have_count(0)


def check_transcript(page: Page, server: Served) -> str:
    """The run has ended and the visible transcript equals the API's. Returns the session's id."""
    wait_idle(page)
    sid = session_of(page)
    wanted = [
        {
            "who": "You" if message["role"] == "user" else "Assistant",
            "text": _squeeze(" ".join(part["text"] for part in message["parts"] if part["type"] == "text")),
            "tools": [f"Tool {part['name']}" for part in message["parts"] if part["type"] == "tool"],
            "notices": int(message["status"] not in ("complete", "streaming")),
        }
        for message in server.messages(sid)
    ]
    expect(page.get_by_role("article")).to_have_count(len(wanted))
    expect(page.locator("[data-unrendered]")).to_have_count(0)  # the Markdown renderer is loaded on demand
    # Notices are loaded on demand too.
    notices = sum(item["notices"] == 1 for item in wanted)
    expect(page.get_by_role("article").get_by_label("Notice", exact=True)).to_have_count(notices)
    shown = page.get_by_role("article").evaluate_all(_READ_TRANSCRIPT)
    assert [{**item, "text": _squeeze(item["text"])} for item in shown] == wanted
    return sid


def _squeeze(text: str) -> str:
    return " ".join(text.split())
