"""Usage in the settings: the report, prices and budgets, and what a reached budget does to a message."""

import re
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.chat_page import answers, axe_violations, button, message_box, send, wait_idle
from tests.browser.conftest import ConsoleErrors, Open, Start
from tests.browser.sizes import DESK, on_desk, on_phone
from tests.http.client import Served
from tests.http.streams import until

ANSWER: list[Any] = [{"say": "yes"}, {"usage": [900, 100]}]
DAILY = {"period": "day", "unit": "tokens", "limit": 1000, "action": "refuse"}


@pytest.fixture
def server(start: Start) -> Served:
    """A process of its own: these tests leave usage and settings behind."""
    served = start()
    served.post("/api/setup/done", expect=204)
    return served


def use(server: Served, **fields: Any) -> None:
    server.ended(server.begin(server.session(**fields), ANSWER))


def usage(page: Page) -> Any:
    return page.get_by_role("region", name="Usage", exact=True)


def cells(page: Page, name: str) -> list[str]:
    """The row of a day, model or project: cost, input, output, answers."""
    row = usage(page).get_by_role("row").filter(has=page.get_by_role("rowheader", name=name, exact=True))
    expect(row).to_have_count(1)
    return [text.strip() for text in row.get_by_role("cell").all_inner_texts()][:4]


@on_desk
def test_usage_is_shown_by_day_model_and_project(server: Served, open_page: Open, size: tuple[int, int]) -> None:
    """Chart, table and totals agree with the API, in light and dark, and fit the screen; a download has the same."""
    use(server, model="m/large", project="garden")
    use(server, model="m/small")
    use(server, model="m/small")
    page = open_page(f"{server.url}/settings#usage", *size)
    total = usage(page).get_by_label("Total")
    expect(total).to_contain_text(re.compile(r"Answers\s*3\s*Input tokens\s*2\.7K\s*Output tokens\s*300"))
    expect(usage(page).get_by_role("img", name=re.compile(r"Tokens per day. Most: 3K on "))).to_be_visible()
    expect(usage(page)).to_contain_text("The cost of 3,000 tokens is unknown.")
    assert axe_violations(page) == []
    usage(page).get_by_text("Project", exact=True).click()
    assert cells(page, "garden") == ["–", "900", "100", "1"]
    assert cells(page, "No project") == ["–", "1.8K", "200", "2"]
    usage(page).get_by_text("Model", exact=True).click()
    assert cells(page, "m/small") == ["Set price", "1.8K", "200", "2"]
    assert axe_violations(page) == []
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    usage(page).get_by_label("Period").select_option("Last 7 days")
    with page.expect_download() as download:
        usage(page).get_by_role("link", name="Download CSV").click()
    lines = download.value.path().read_text().splitlines()
    assert [line.split(",")[:3] for line in lines[1:]] == [["m/small", "2", "1800"], ["m/large", "1", "900"]]


def test_a_price_is_set_changed_and_removed_by_keyboard(server: Served, open_page: Open) -> None:
    """The costs follow at once; a price without input or output is not taken."""
    use(server, model="m/large")
    page = open_page(f"{server.url}/settings#usage", *DESK)
    usage(page).get_by_text("Model", exact=True).click()
    usage(page).get_by_role("button", name="Set price: m/large").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Price of m/large")
    expect(dialog.get_by_label("Input", exact=True)).to_be_focused()
    page.keyboard.type("1000")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("alert")).to_contain_text("Enter a price for input and output.")
    assert axe_violations(page) == []
    dialog.get_by_label("Output").fill("2000")
    page.keyboard.press("Enter")
    expect(usage(page).get_by_role("button", name="Change price: m/large, cost ~$1.10")).to_be_visible()
    expect(usage(page)).to_contain_text("~ Estimated from the prices of the models")
    assert server.get("/api/prices")["prices"]["m/large"]["input"] == 1000
    usage(page).get_by_role("button", name="Change price: m/large").click()
    button(dialog, "Remove price").click()
    expect(usage(page).get_by_role("button", name="Set price: m/large, cost unknown")).to_be_visible()
    assert server.get("/api/prices") == {"prices": {}}


@on_phone
def test_a_budget_is_added_and_removed(server: Served, open_page: Open, size: tuple[int, int]) -> None:
    """It shows how much is used and when it is free again; an amount is needed."""
    use(server)
    page = open_page(f"{server.url}/settings#usage", *size)
    button(usage(page), "Add budget").click()
    dialog = page.get_by_role("dialog", name="Add budget")
    button(dialog, "Add").click()
    expect(dialog.get_by_role("alert")).to_have_text("Enter an amount.")
    assert axe_violations(page) == []
    dialog.get_by_text("Tokens", exact=True).click()
    dialog.get_by_label("Input and output tokens together").fill("4000")
    dialog.get_by_text("Per day").click()
    dialog.get_by_text("Block new messages").click()
    button(dialog, "Add").click()
    item = usage(page).get_by_role("list", name="Budgets").get_by_role("listitem")
    expect(item).to_contain_text("4,000 tokens a day")
    expect(item).to_contain_text("1,000 tokens used · Blocks new messages when used up · Resets")
    expect(item.get_by_role("meter")).to_have_attribute("value", "0.25")
    assert axe_violations(page) == []
    (stored,) = server.get("/api/budgets")["items"]
    assert {name: stored[name] for name in DAILY} == {**DAILY, "limit": 4000}
    button(item, "Edit: 4,000 tokens a day").click()
    edited = page.get_by_role("dialog", name="Edit budget")
    edited.get_by_label("Input and output tokens together").fill("8000")
    button(edited, "Save").click()
    expect(item).to_contain_text("8,000 tokens a day")
    button(item, "Remove: 8,000 tokens a day").click()
    button(page.get_by_role("dialog", name="Remove the budget"), "Remove").click()
    expect(item).to_have_count(0)
    assert server.get("/api/budgets")["items"] == []


def test_budgets_of_two_tabs_are_all_kept(server: Served, open_page: Open, console_errors: ConsoleErrors) -> None:
    """A tab adds one budget and removes that one alone, whatever another has changed since it loaded them."""
    server.set_budgets(DAILY, {**DAILY, "limit": 7})
    page = open_page(f"{server.url}/settings#usage", *DESK)
    budgets = usage(page).get_by_role("list", name="Budgets").get_by_role("listitem")
    expect(budgets).to_have_count(2)
    server.post("/api/budgets", {**DAILY, "action": "warn"}, 201)
    button(usage(page), "Add budget").click()
    dialog = page.get_by_role("dialog", name="Add budget")
    dialog.get_by_label("Amount in US dollars").fill("20")
    button(dialog, "Add").click()
    expect(budgets).to_have_count(4)
    first = server.get("/api/budgets")["items"][0]
    server.call("DELETE", f"/api/budgets/{first['id']}", expect=204)
    button(budgets.first, "Remove: 1,000 tokens a day").click()  # which is gone
    button(page.get_by_role("dialog", name="Remove the budget"), "Remove").click()
    expect(budgets.first).to_contain_text("7 tokens a day")
    left = server.get("/api/budgets")
    assert [(item["period"], item["limit"]) for item in left["items"]] == [("day", 7), ("day", 1000), ("month", 20)]
    assert left["time_zone"] == "UTC"
    console_errors.expect("404")


def test_the_first_budget_sets_the_time_zone_of_the_browser(
    server: Served, open_page: Open, context: BrowserContext, console_errors: ConsoleErrors
) -> None:
    """Later ones leave it as it is. A budget is added even if the server does not know the zone."""
    _set_time_zone(context)
    page = open_page(f"{server.url}/settings#usage", *DESK)

    def add(count: int) -> Any:
        button(usage(page), "Add budget").click()
        dialog = page.get_by_role("dialog", name="Add budget")
        dialog.get_by_label("Amount in US dollars").fill("20")
        button(dialog, "Add").click()
        expect(usage(page).get_by_role("list", name="Budgets").get_by_role("listitem")).to_have_count(count)
        return server.get("/api/budgets")["time_zone"]

    assert add(1) == "Europe/Paris"
    server.call("PATCH", "/api/budgets", {"time_zone": "Asia/Tokyo"}, 200)
    assert add(2) == "Asia/Tokyo"
    server.set_budgets()
    page.reload()
    refusal = server.refused("invalid", "PATCH", "/api/budgets", {"time_zone": "Nowhere/Land"})
    is_change = re.compile(r"/api/budgets$")
    context.route(
        is_change,
        lambda route: route.fulfill(status=422, json=refusal) if route.request.method == "PATCH" else route.continue_(),
    )
    expect(usage(page)).to_contain_text("Get a warning, or block new messages")
    assert add(1) == "UTC"
    console_errors.expect("422")


def test_a_refused_message_is_kept_and_sent_once_the_budget_is_raised(
    server: Served, open_page: Open, console_errors: ConsoleErrors
) -> None:
    """The page says which budget and until when, tries nothing by itself, and loses nothing."""
    server.set_budgets(DAILY)
    page = open_page(server.url, *DESK)
    send(page, '[{"say": "first"}, {"usage": [900, 100]}]', shows="first")
    wait_idle(page)
    send(page, "and then?")
    refused = page.get_by_text("The daily budget of 1,000 tokens is used up: 1,000 tokens so far.")
    expect(refused).to_contain_text("New messages are accepted from")
    expect(refused.get_by_role("link", name="Settings → Usage")).to_be_visible()
    expect(message_box(page)).to_be_editable()
    assert axe_violations(page) == []
    server.set_budgets({**DAILY, "limit": 5000})
    page.reload()
    button(page, "Resend").click()
    expect(answers(page)).to_have_count(2)
    expect(answers(page).last).to_contain_text("and then?")
    console_errors.expect("429")


def test_a_refused_message_goes_back_to_the_message_box(
    server: Served, open_page: Open, console_errors: ConsoleErrors
) -> None:
    """In a chat, or in a new one: the chat that was created for it does not stay behind."""
    server.set_budgets({**DAILY, "limit": 0})
    page = open_page(server.url, *DESK)
    send(page, "my long question")
    expect(page.get_by_text("Not sent")).to_be_visible()
    button(page.get_by_role("article", name="You"), "Edit").click()
    expect(message_box(page)).to_have_value("my long question")
    expect(message_box(page)).to_be_focused()
    expect(page).to_have_url(f"{server.url}/")
    rows = page.get_by_role("navigation", name="Chats").get_by_role("listitem")
    expect(rows).to_have_count(0)
    until(lambda: server.get("/api/sessions")["items"], lambda items: items == [])
    server.set_budgets()
    button(page, "Send").click()
    expect(answers(page)).to_contain_text("my long question")
    wait_idle(page)
    server.set_budgets({**DAILY, "limit": 0})
    send(page, "one more")
    button(page.get_by_role("article", name="You").last, "Edit").click()
    expect(message_box(page)).to_have_value("one more")
    expect(answers(page)).to_have_count(1)
    console_errors.expect("429")


def test_a_warning_is_shown_once(server: Served, open_page: Open) -> None:
    """The message is sent all the same."""
    server.set_budgets({**DAILY, "limit": 0, "action": "warn"})
    page = open_page(server.url, *DESK)
    send(page, "first", shows="first")
    warning = page.get_by_text("The daily budget of 0 tokens is used up")
    expect(warning).to_be_visible()
    assert axe_violations(page) == []
    button(page, "Dismiss").click()
    send(page, "second", shows="second")
    wait_idle(page)
    expect(warning).to_have_count(0)


def test_a_server_without_time_zone_data_shows_days_in_utc(
    server: Served, open_page: Open, context: BrowserContext, console_errors: ConsoleErrors
) -> None:
    """It knows no other zone than UTC and refuses that of the browser."""
    use(server)
    refusal = server.refused("invalid", "GET", "/api/usage?time_zone=Europe/Nowhere")
    local = re.compile(r"/api/usage\?.*time_zone=(?!UTC)")
    context.route(local, lambda route: route.fulfill(status=422, json=refusal))
    _set_time_zone(context)
    page = open_page(f"{server.url}/settings#usage", *DESK)
    expect(usage(page).get_by_label("Total")).to_contain_text("900")
    expect(usage(page).get_by_role("alert")).to_have_count(0)
    console_errors.expect("422")


def test_what_the_server_refuses_about_usage_is_shown(
    server: Served, open_page: Open, context: BrowserContext, console_errors: ConsoleErrors
) -> None:
    """Only a time zone that it does not know is replaced."""
    use(server)
    refusal = server.refused("invalid", "GET", "/api/usage?from=1500-01-01")
    context.route(re.compile(r"/api/usage\?"), lambda route: route.fulfill(status=422, json=refusal))
    _set_time_zone(context)
    page = open_page(f"{server.url}/settings#usage", *DESK)
    expect(usage(page).get_by_role("alert")).to_contain_text("must be a day from")
    link = usage(page).get_by_role("link", name="Download CSV")
    expect(link).to_have_attribute("href", re.compile("time_zone=Europe%2FParis"))
    console_errors.expect("422")


def _set_time_zone(context: BrowserContext) -> None:
    context.add_init_script(
        "const own = Intl.DateTimeFormat.prototype.resolvedOptions;"
        "Intl.DateTimeFormat.prototype.resolvedOptions = function () {"
        "  return { ...own.call(this), timeZone: 'Europe/Paris' };"
        "};"
    )
