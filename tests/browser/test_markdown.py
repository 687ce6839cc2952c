"""How answers are rendered: formulas, footnotes, tables, diagrams, direction, and texts that are hard to parse."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.chat_page import answers, send, wait_idle
from tests.browser.conftest import Open
from tests.http.client import Served

HOSTILE_FORMULA = "$$" + "\\frac{" * 180 + "a" + "}{b}" * 180 + "$$\n\n"
FROZEN = (("*a_ ", 20_000), ("\\[", 60_000))
"""Texts that once froze the page for 36 and 11 seconds."""
HOSTILE = (
    "]",
    "> ",
    "1. ",
    "`a``",
    "|a",
    "$a$ ",
    "a\n=\n",
    "[^a]: x\n",
    "a\n\n",
    HOSTILE_FORMULA,
    "a\u0301\u0302",
    "אa ",
)
DENSE = ("|a|\n|-|\n", "# a\n", "www.a.b ", "\\(x^2\\)\n\n")
"""Each of a few characters becomes an element, or several."""


def show(page: Page, markdown: str) -> Locator:
    """The newest answer, which is this text."""
    answer = answers(page).nth(answers(page).count())
    send(page, [{"say": markdown}])
    expect(answer.locator("[data-part=text]")).to_have_count(1)
    wait_idle(page)
    expect(page.locator("[data-unrendered]")).to_have_count(0)
    return answer


def test_only_formulas_are_rendered_as_formulas(server: Served, open_page: Open) -> None:
    """Prices, shell variables and code keep their dollar signs and backslashes; formulas are rendered anywhere."""
    page = open_page(server.url)
    answer = show(page, "It costs $5 now and $10 later.\n\nUse $HOME or $PATH, $HOME:$PATH and US$5.")
    expect(answer).to_contain_text("It costs $5 now and $10 later.")
    expect(answer).to_contain_text("Use $HOME or $PATH, $HOME:$PATH and US$5.")
    expect(answer.locator(".katex")).to_have_count(0)
    answer = show(page, "Search with `grep '\\(foo\\)'` and `echo $a $b$`, then \\(x^2\\).")
    expect(answer.locator(".katex")).to_have_count(1)
    expect(answer.locator("code").first).to_have_text("grep '\\(foo\\)'")
    answer = show(
        page, "1. First $a_1$:\n\n   ```sh\n   echo $x$\n   ```\n\n   then \\(b\\) and\n\n   \\[\n   c\n   \\]\n2. Next"
    )
    expect(answer.locator(".katex")).to_have_count(3)
    expect(answer.locator(".katex-display")).to_have_count(1)
    expect(answer.locator("li")).to_have_count(2)
    expect(answer.locator("figure pre")).to_have_text("echo $x$")
    answer = show(page, "\\begin{align}\na &= b \\\\\n&= c\n\\end{align}\n\nBroken: $\\frac{a$ and \\(\\frac{b\\).")
    expect(answer.locator(".katex-display")).to_have_count(1)
    expect(answer).to_contain_text("Broken: $\\frac{a$ and \\(\\frac{b\\).")


def test_definitions_reach_every_block(server: Served, open_page: Open) -> None:
    """Reference links and footnotes work when their definitions are in another paragraph."""
    page = open_page(server.url)
    text = (
        "See [the docs][d] and [Docs].[^1] More.[^long]\n\n"
        "- a list with [the docs][D]\n\n"
        "[d]: https://docs.example/d\n[docs]: https://docs.example/ 'Docs'\n\n"
        "[^1]: The *first* note.\n[^long]: The second note.\n\n    Its second paragraph."
    )
    answer = show(page, text)
    links = answer.locator("a[href^='https:']").evaluate_all("items => items.map(item => item.href)")
    assert links == ["https://docs.example/d", "https://docs.example/", "https://docs.example/d"]
    notes = answer.get_by_role("region", name="Footnotes").get_by_role("listitem")
    expect(notes).to_have_text(
        [re.compile("The first note."), re.compile("The second note.*Its second paragraph", re.S)]
    )
    answer.get_by_role("link", name="Footnote 2").click()
    expect(notes.nth(1)).to_be_focused()
    expect(answer).not_to_contain_text("[^")


def test_simple_html_tags_are_formatting(server: Served, open_page: Open) -> None:
    """Tags without attributes that only format text are applied; all other HTML is shown as it is written."""
    page = open_page(server.url)
    answer = show(
        page,
        "H<sub>2</sub>O is<br>x<sup>2</sup> <kbd>Enter</kbd>\n\n|a|\n|-|\n|one<br/>two|\n\n<b onclick=x>b</b> </sub>",
    )
    expect(answer.locator("sub")).to_have_text("2")
    expect(answer.locator("sup")).to_have_text("2")
    expect(answer.locator("kbd")).to_have_text("Enter")
    expect(answer.locator("br")).to_have_count(2)
    expect(answer).to_contain_text("<b onclick=x>b</b> </sub>")


def test_a_table_keeps_its_words_whole(server: Served, open_page: Open) -> None:
    """A table that is too wide scrolls; the words in its cells are not broken."""
    page = open_page(server.url, width=360, height=740)
    head = "|" + "|".join(f"Characteristics{n}" for n in range(6)) + "|"
    answer = show(page, f"{head}\n{'|-' * 6}|\n{head}")
    heights = answer.locator("th").evaluate_all("cells => cells.map(cell => cell.clientHeight)")
    assert max(heights) < 50
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_text_has_its_own_direction(server: Served, open_page: Open) -> None:
    """Arabic paragraphs and lists run from right to left, English ones and code from left to right."""
    page = open_page(server.url)
    answer = show(page, "مرحبا بالعالم\n\n1. واحد\n\n2. اثنان\n\nHello\n\n```\nمرحبا\n```")
    read = "item => getComputedStyle(item).direction"
    assert [answer.locator(tag).first.evaluate(read) for tag in ("p", "ol", "pre")] == ["rtl", "rtl", "ltr"]
    assert answer.get_by_text("Hello").evaluate(read) == "ltr"
    send(page, "שלום")
    expect(page.get_by_role("article", name="You").last.locator("[data-part=text]")).to_have_attribute("dir", "auto")


def test_a_diagram_is_isolated_and_follows_the_theme(server: Served, open_page: Open) -> None:
    """The frame has an origin of its own, and a diagram is dark when the page is, by the system or by choice."""
    page = open_page(server.url)
    page.emulate_media(color_scheme="dark")
    answer = show(page, "```mermaid\ngraph TD\n  Sea --> Harbor\n```")
    frame = answer.locator("iframe[title=Diagram]")
    inside = frame.content_frame
    label = inside.get_by_text("Harbor")
    expect(label).to_be_visible()
    brightness = (
        "item => { const [r, g, b] = getComputedStyle(item).fill.match(/\\d+/g).map(Number); return r + g + b }"
    )
    assert label.evaluate(brightness) > 382
    page.emulate_media(color_scheme="light")
    expect(label).to_have_css("fill", re.compile(r"rgb\(\d?\d, \d?\d, \d?\d\)"))
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    expect(label).not_to_have_css("fill", re.compile(r"rgb\(\d?\d, \d?\d, \d?\d\)"))
    assert inside.locator("body").evaluate("() => self.origin") == "null"
    response = page.request.get(f"{server.url}/static/app/diagram.html")
    assert "sandbox allow-scripts" in response.headers["content-security-policy"]


@pytest.mark.soak
def test_diagrams_have_a_limited_number_of_frames(server: Served, open_page: Open) -> None:
    """Only diagrams near the viewport have a frame; beyond the limit, one on request takes the place of the oldest."""
    page = open_page(server.url)
    answer = show(page, "".join(f"```mermaid\ngraph TD\n  Sea --> Harbor{n}\n```\n\n" for n in range(60)))
    frames = answer.locator("iframe[title=Diagram]")
    last = answer.locator("figure").last
    last.scroll_into_view_if_needed()
    expect(last.locator("iframe").content_frame.get_by_text("Harbor59")).to_be_visible()
    assert frames.count() <= 20
    for n in range(0, 60, 5):
        answer.locator("figure").nth(n).scroll_into_view_if_needed()
    expect(frames).to_have_count(20)
    waiting = answer.locator("figure").filter(has_not=page.locator("iframe")).first
    n = int((waiting.locator("pre").text_content() or "").rpartition("Harbor")[2])
    waiting.get_by_role("button", name="Show diagram").click()
    shown = answer.locator("figure").nth(n).locator("iframe")
    expect(shown.content_frame.get_by_text(f"Harbor{n}")).to_be_visible()
    expect(frames).to_have_count(20)


class MainThread:
    """Counts the processor time of the page's main thread, which other programs on the machine do not lengthen."""

    def __init__(self, page: Page) -> None:
        self._session = page.context.new_cdp_session(page)
        self._session.send("Performance.enable", {"timeDomain": "threadTicks"})

    @property
    def seconds(self) -> float:
        metrics = self._session.send("Performance.getMetrics")["metrics"]
        return next(float(each["value"]) for each in metrics if each["name"] == "TaskDuration")


def go_to(page: Page, path: str) -> None:
    """As a link inside the app does."""
    page.evaluate(
        "path => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')) }",
        path,
    )


@pytest.mark.parametrize("size", [40_000, pytest.param(100_000, marks=pytest.mark.soak)])
def test_hostile_text_does_not_freeze_the_page(server: Served, open_page: Open, size: int) -> None:
    """Answers made to be hard to parse, or to become very many elements, are shown, as text where necessary. The main
    thread is busy with one for a moment."""
    page = open_page(server.url)
    main_thread = MainThread(page)
    hostile = [(piece, size // len(piece)) for piece in HOSTILE]
    dense = [(piece * (1_000 // len(piece)) + "\n\n", 5 * size // 2_000) for piece in DENSE]
    show(page, "A first answer loads the renderer: **a** `b` $c$")
    for piece, times, limit in [*((*text, 0.5) for text in FROZEN), *((*text, 2.0) for text in hostile + dense)]:
        go_to(page, "/")
        expect(answers(page)).to_have_count(0)
        sid = server.session()
        server.events(server.send(sid, [{"say": piece, "times": times}])["run"]["id"])
        before = main_thread.seconds
        go_to(page, f"/c/{sid}")
        expect(answers(page)).to_have_count(1)
        expect(page.locator("[data-unrendered]")).to_have_count(0, timeout=120_000)
        page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
        assert main_thread.seconds - before < limit, piece[:20]
        assert answers(page).locator("*").count() < 50_000, piece[:20]


def test_hostile_text_streams_in(server: Served, open_page: Open) -> None:
    """While such an answer streams in, the page still reacts, and it shows the whole answer at its end."""
    page = open_page(server.url)
    send(page, [{"say": "*a_ " * 25, "after": 0.005}] * 150)
    expect(answers(page)).to_contain_text("*a_")
    page.get_by_role("textbox", name="Message", exact=True).fill("still here")
    wait_idle(page)
    assert len(answers(page).locator("[data-part=text]").inner_text()) >= 14_500


def test_only_bullets_of_tasks_are_replaced_by_their_boxes(server: Served, open_page: Open) -> None:
    """A numbered list keeps its numbers when an item of it is a task."""
    page = open_page(server.url)
    answer = show(page, "1. one\n2. [ ] task\n3. three\n\ntext\n\n- [x] done\n")
    markers = answer.locator("li").evaluate_all("items => items.map(item => getComputedStyle(item).listStyleType)")
    assert markers == ["decimal", "decimal", "decimal", "none"]


def test_boxes_of_tasks_are_indented_as_bullets_are(server: Served, open_page: Open) -> None:
    """A nested list of tasks is further in than its parent by as much as any list, and its lines have one edge."""
    page = open_page(server.url, width=360, height=740)
    answer = show(page, f"- [ ] outer\n  - [x] {'many words ' * 12}\n    - [ ] inmost\n\ntext\n\n- a\n  - b\n    - c\n")
    lefts = answer.locator("li").evaluate_all("items => items.map(item => item.getBoundingClientRect().left)")
    assert lefts[:3] == lefts[3:]
    boxes = answer.locator("li > input").evaluate_all("boxes => boxes.map(box => box.getBoundingClientRect().right)")
    assert all(box <= left for box, left in zip(boxes, lefts, strict=False))
    tops = answer.locator("li").evaluate_all("items => items.map(item => item.getBoundingClientRect().top)")
    assert tops[1] - tops[0] == tops[4] - tops[3]
