"""How answers end and what can be done with them: cut short, older than others, asked for twice, without streams."""

import pytest
from playwright.sync_api import BrowserContext, Route, expect

from tests.browser.chat_page import answers, button, check_transcript, notice, send, session_of, wait_idle
from tests.browser.conftest import ConsoleErrors, Open
from tests.browser.test_failures import drop_network_errors
from tests.http.client import Served, summarize


@pytest.mark.parametrize(
    ("reason", "text"),
    [("length", "output limit"), pytest.param("content_filter", "content filter", marks=pytest.mark.soak)],
)
def test_an_answer_that_was_cut_short(server: Served, open_page: Open, reason: str, text: str) -> None:
    """X5: the page says that the provider ended the answer, also after a reload, and Continue goes on."""
    page = open_page(server.url)
    send(page, [{"say": "One, two"}, {"finish": reason}], shows="One, two")
    expect(notice(page)).to_contain_text(text)
    page.reload()
    expect(notice(page)).to_contain_text(text)
    button(page, "Continue").click()
    expect(page.get_by_role("group", name="Versions")).to_contain_text("2/2")
    wait_idle(page)
    expect(notice(page)).to_have_count(0)


def test_only_the_last_answer_can_be_continued(server: Served, open_page: Open) -> None:
    """O2: continuing an older answer would hide the turns after it, so it is not offered there."""
    sid = server.session()
    for text in ("first", "second"):
        server.events(server.send(sid, [{"say": text}, {"fail": ["x", f"The {text} failed."]}])["run"]["id"])
    page = open_page(f"{server.url}/c/{sid}")
    expect(notice(page)).to_have_count(2)
    expect(button(notice(page).first, "Regenerate")).to_be_visible()
    expect(button(notice(page).first, "Continue")).to_have_count(0)
    expect(button(notice(page).last, "Continue")).to_be_visible()
    expect(notice(page).first).to_contain_text("Can’t continue: there are newer messages.")
    button(notice(page).first, "Regenerate").click()
    confirmation = page.get_by_role("status", name="Confirmation")
    expect(confirmation).to_contain_text("Later messages are in the previous version")
    button(confirmation, "Show").click()
    expect(notice(page)).to_have_count(2)


def test_an_answer_that_failed_before_its_first_word(server: Served, open_page: Open) -> None:
    """There is nothing to continue: one button tries again, one leads to the settings that mend it."""
    sid = server.session(title="Keys")
    server.events(server.send(sid, [{"fail": ["auth", "The key was rejected."]}])["run"]["id"])
    page = open_page(f"{server.url}/c/{sid}")
    expect(notice(page)).to_contain_text("The key was rejected.")
    expect(notice(page).get_by_role("link", name="Open model settings")).to_be_visible()
    expect(notice(page).get_by_role("button")).to_have_text(["Try again"])
    for name in ("Copy", "Edit answer"):  # there is no text
        expect(button(answers(page), name)).to_have_count(0)
    button(notice(page), "Try again").click()
    expect(page.get_by_role("group", name="Versions")).to_contain_text("2/2")
    wait_idle(page)
    button(page, "Branch in new chat").click()
    expect(page.get_by_role("heading", name="Keys (branch)", exact=True)).to_be_visible()
    server.events(server.send(sid, [{"fail": ["context-length", "The conversation is too long."]}])["run"]["id"])
    page.goto(f"{server.url}/c/{sid}")
    expect(button(notice(page).last, "Summarize older messages")).to_be_visible()


def test_a_double_click_on_regenerate_makes_one_answer(server: Served, open_page: Open) -> None:
    """A2: two clicks before the server answers are one."""
    page = open_page(server.url)
    send(page, "once", shows="once")
    wait_idle(page)
    held: list[Route] = []
    page.route("**/retry", lambda route: held.append(route))  # noqa: PLW0108 - Playwright cannot wrap a built-in
    button(page, "Regenerate").dblclick()
    page.wait_for_timeout(0)
    for route in held:
        route.continue_()
    expect(page.get_by_role("group", name="Versions")).to_contain_text("2/2")
    check_transcript(page, server)
    assert len(held) == 1


def test_a_request_that_is_repeated_is_shown(server: Served, open_page: Open) -> None:
    """E1: while the model's provider is asked again, the page says why and which attempt it is; then it does not."""
    page = open_page(server.url)
    send(page, [{"retrying": [2, 4, "The provider is overloaded."]}, {"meet": "g"}, {"say": "Here."}, {"meet": "h"}])
    expect(answers(page)).to_contain_text("The provider is overloaded. Retrying (2 of 4)…")
    server.order(open="g")
    expect(answers(page)).to_contain_text("Here.")
    expect(answers(page)).not_to_contain_text("Retrying")
    server.order(open="h")
    check_transcript(page, server)


def test_without_event_streams_an_approval_can_be_answered(
    server: Served, open_page: Open, context: BrowserContext, console_errors: ConsoleErrors
) -> None:
    """U3: only the journal has the question's id; it is read without a stream, and the tool runs."""
    context.route("**/events", lambda route: route.abort())
    page = open_page(server.url)
    send(page, [{"call": "c1", "asks": True}, {"say": "Done."}])
    page.get_by_role("group", name="Approval").get_by_role("button", name="Allow once").click()
    expect(answers(page)).to_contain_text("Done.")
    check_transcript(page, server)
    drop_network_errors(console_errors)


def test_without_event_streams_the_page_polls(
    server: Served, open_page: Open, context: BrowserContext, console_errors: ConsoleErrors
) -> None:
    """U3: a proxy that blocks event streams and nothing else: answers appear all the same, and the page says why."""
    context.route("**/events", lambda route: route.abort())
    page = open_page(server.url)
    send(page, [{"say": "Begun. "}, {"meet": "g"}, {"say": "Ended."}], shows="Begun.")
    expect(page.get_by_text("Live updates are blocked")).to_be_visible()
    server.order(open="g")
    expect(answers(page)).to_contain_text("Ended.")
    check_transcript(page, server)
    context.unroute("**/events")
    expect(page.get_by_text("Live updates are blocked")).to_have_count(0)
    server.events(server.send(session_of(page), "from elsewhere")["run"]["id"])
    expect(answers(page)).to_have_count(2)
    drop_network_errors(console_errors)


def test_where_older_messages_were_summarized(server: Served, open_page: Open) -> None:
    """O3: a line says so, shows the summary on demand, and every earlier message stays readable."""
    sid = server.session()
    for text in ("first", "second"):
        server.events(server.send(sid, [{"say": text}])["run"]["id"])
    imported = summarize(server, sid, server.messages(sid)[1]["id"], "They said **first**.")
    page = open_page(f"{server.url}/c/{imported}")
    divider = page.get_by_role("region", name="Summarized messages")
    expect(divider).to_have_count(1)
    expect(divider).to_contain_text("Earlier messages were summarized to save context")
    button(divider, "Show summary").click()
    expect(divider.get_by_text("first")).to_be_visible()
    button(divider, "Hide summary").click()
    expect(divider.get_by_text("first")).to_have_count(0)
    check_transcript(page, server)
