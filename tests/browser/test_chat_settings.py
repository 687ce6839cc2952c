"""The settings of a chat in the page: changed, seen, reset, kept, and inherited from the defaults."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Dialog, Locator, Page, expect

from tests.browser.chat_page import answers, axe_violations, button, message_box, send, session_of, wait_idle
from tests.browser.conftest import Open
from tests.browser.sizes import on_desk, on_phone
from tests.fork_server import ForkServer, ServerForker
from tests.http.client import Served

QUESTION = "What is a good knot for a wet rope?"


@pytest.fixture(scope="module")
def demo(fork_server: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(
        ServerForker(fork_server, "tests.browser.demo_server"), tmp_path_factory.mktemp("demo") / "data"
    ) as served:
        served.ready().post("/api/setup/done", expect=204)
        yield served


@pytest.fixture
def defaults(demo: Served) -> Iterator[Served]:
    """The server, whose defaults are cleared afterwards."""
    yield demo
    demo.call("PATCH", "/api/chat-defaults", dict.fromkeys(demo.get("/api/chat-defaults")), 200)


def open_settings(page: Page) -> Locator:
    page.get_by_role("button", name="Chat settings").click()
    dialog = page.get_by_role("dialog", name="Chat settings")
    expect(dialog).to_be_visible()
    return dialog


@on_phone
def test_settings_are_changed_marked_kept_and_reset(demo: Served, open_page: Open, size: tuple[int, int]) -> None:
    """The button has a mark, each changed field can be reset, and a reload shows the same settings."""
    sid = demo.session(title="Knots")
    page = open_page(f"{demo.url}/c/{sid}", *size)
    send(page, QUESTION, shows="double fisherman")
    wait_idle(page)
    dialog = open_settings(page)
    expect(dialog.get_by_text("Changed")).to_have_count(0)
    dialog.get_by_role("textbox", name="System prompt").fill("Be brief.")
    dialog.get_by_role("spinbutton", name="Temperature").fill("0.4")
    dialog.get_by_role("spinbutton", name="Max tokens").fill("250")
    dialog.get_by_role("combobox", name="Reasoning effort").select_option("High")
    dialog.get_by_role("checkbox", name="Use tools").uncheck()
    dialog.get_by_role("checkbox", name="Use memory").uncheck()
    expect(dialog.get_by_text("Changed")).to_have_count(6)
    assert axe_violations(page) == []
    button(dialog, "Save").click()
    expect(dialog).to_be_hidden()
    stored = demo.look(sid)
    names = ("system", "temperature", "max_tokens", "reasoning_effort", "use_tools", "memory", "top_p")
    assert [stored[name] for name in names] == ["Be brief.", 0.4, 250, "high", False, "none", None]
    expect(button(page, "Chat settings (changed)")).to_be_focused()
    expect(page.get_by_text("Memory off", exact=True)).to_be_visible()
    page.reload()
    dialog = open_settings(page)
    expect(dialog.get_by_role("textbox", name="System prompt")).to_have_value("Be brief.")
    expect(dialog.get_by_role("spinbutton", name="Temperature")).to_have_value("0.4")
    for name in ("System prompt", "Reasoning effort", "Max tokens", "Use tools", "Use memory", "Temperature"):
        button(dialog, f"Reset {name}").click()
    expect(dialog.get_by_role("checkbox", name="Use memory")).to_be_checked()
    button(dialog, "Save").click()
    expect(button(page, "Chat settings")).to_be_visible()
    expect(page.get_by_text("Memory off", exact=True)).to_have_count(0)
    assert {demo.look(sid)[name] for name in names} == {None}


def test_settings_work_by_keyboard(demo: Served, open_page: Open) -> None:
    """The dialog opens with Enter, Escape leaves it and Enter in a field saves; the focus returns to the button."""
    sid = demo.session(title="Keys")
    page = open_page(f"{demo.url}/c/{sid}")
    opener = page.get_by_role("button", name="Chat settings")
    opener.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Chat settings")
    expect(dialog.get_by_role("combobox", name="Model")).to_be_focused()
    prompt = dialog.get_by_role("textbox", name="System prompt")
    expect(prompt).to_have_accessible_description("Added to Holdfast’s built-in instructions.")
    page.keyboard.press("Tab")
    page.keyboard.type("Forget this.")
    page.keyboard.press("Escape")
    button(page.get_by_role("dialog", name="Discard changes?"), "Discard").press("Enter")
    expect(dialog).to_be_hidden()
    expect(opener).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("textbox", name="System prompt")).to_have_value("")
    dialog.get_by_role("spinbutton", name="Top P").focus()
    page.keyboard.type("0.5")
    page.keyboard.press("Enter")
    expect(dialog).to_be_hidden()
    expect(opener).to_be_focused()
    assert (demo.look(sid)["top_p"], demo.look(sid)["system"]) == (0.5, None)


def test_a_value_out_of_range_is_not_saved(demo: Served, open_page: Open) -> None:
    """The field says so, and the dialog stays open."""
    sid = demo.session()
    page = open_page(f"{demo.url}/c/{sid}")
    dialog = open_settings(page)
    temperature = dialog.get_by_role("spinbutton", name="Temperature")
    for typed in ("3", "warm"):
        temperature.fill(typed)
        button(dialog, "Save").click()
        assert temperature.evaluate("field => field.validationMessage") == "Enter a number from 0 to 2."
        expect(dialog).to_be_visible()
        expect(temperature).to_have_value(typed)
    assert demo.look(sid)["temperature"] is None


def test_a_number_out_of_range_is_reported_while_it_is_typed(demo: Served, open_page: Open) -> None:
    """Not only when it is saved; the beginning of a number that may still be in range is no mistake."""
    page = open_page(f"{demo.url}/c/{demo.session()}")
    dialog = open_settings(page)
    temperature, top_p = (dialog.get_by_role("spinbutton", name=name) for name in ("Temperature", "Top P"))
    temperature.press_sequentially("9")
    expect(dialog.get_by_role("alert")).to_have_text("Enter a number from 0 to 2.")
    expect(temperature).to_have_accessible_description(
        "Enter a number from 0 to 2. From 0 to 2. Lower is more predictable."
    )
    assert axe_violations(page) == []
    temperature.fill("0.9")
    expect(dialog.get_by_role("alert")).to_have_count(0)
    top_p.press_sequentially("0.")
    expect(top_p).to_have_attribute("aria-invalid", "false")
    top_p.press_sequentially("5")
    expect(dialog.get_by_text("Changed")).to_have_count(2)


def test_a_dialog_asks_before_it_loses_what_was_typed(demo: Served, open_page: Open) -> None:
    """Escape, also again and again, and a click outside ask if something was changed; a click on its edge does
    nothing."""
    page = open_page(f"{demo.url}/c/{demo.session()}")
    dialog, question = open_settings(page), page.get_by_role("dialog", name="Discard changes?")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(question).to_have_count(0)
    dialog = open_settings(page)
    prompt = dialog.get_by_role("textbox", name="System prompt")
    prompt.fill("Answer in Breton.")
    for _ in range(3):
        page.keyboard.press("Escape")
        expect(question).to_be_visible()
        page.keyboard.press("Escape")
        expect(question).to_have_count(0)
        expect(prompt).to_be_focused()
    box = dialog.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 5, box["y"] + 5)
    expect(question).to_have_count(0)
    page.mouse.click(5, 5)
    button(question, "Cancel").click()
    expect(prompt).to_have_value("Answer in Breton.")
    page.mouse.click(5, 5)
    button(question, "Discard").click()
    expect(dialog).to_be_hidden()


def test_unsaved_defaults_are_asked_about_before_the_page_is_left(defaults: Served, open_page: Open) -> None:
    """The browser asks when the page is loaded again; once they are saved, it does not."""
    page = open_page(f"{defaults.url}/settings#chat-defaults")
    form = page.get_by_role("form", name="Chat defaults")
    form.get_by_role("textbox", name="System prompt").fill("Answer in Breton.")
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    with page.expect_event("dialog"):
        page.close(run_before_unload=True)
    button(form, "Save defaults").click()
    expect(form.get_by_role("status")).to_have_text("Saved")
    assert asked == ["beforeunload"]
    page.reload()
    expect(form.get_by_role("textbox", name="System prompt")).to_have_value("Answer in Breton.")
    assert asked == ["beforeunload"]


def test_numbers_are_stepped_by_keys_and_typed_with_a_comma(demo: Served, open_page: Open) -> None:
    """The steps are as fine as the setting needs, and do not limit what can be typed."""
    sid = demo.session()
    page = open_page(f"{demo.url}/c/{sid}")
    dialog = open_settings(page)
    temperature = dialog.get_by_role("spinbutton", name="Temperature")
    for _ in range(3):
        temperature.press("ArrowUp")
    expect(temperature).to_have_value("0.3")
    top_p = dialog.get_by_role("spinbutton", name="Top P")
    top_p.press_sequentially("0,725")
    expect(top_p).to_have_value("0,725")
    expect(top_p).to_have_accessible_description("From 0.01 to 1. Lower is more focused.")
    button(dialog, "Save").click()
    expect(dialog).to_be_hidden()
    assert (demo.look(sid)["temperature"], demo.look(sid)["top_p"]) == (0.3, 0.725)


def test_a_setting_that_the_model_ignores_is_said(demo: Served, open_page: Open) -> None:
    """Decision 16: a value that does not reach the model is reported next to it."""
    page = open_page(f"{demo.url}/c/{demo.session(reasoning_effort='low')}")
    dialog = open_settings(page)
    expect(dialog.get_by_text("ignores this setting")).to_have_count(0)
    dialog.get_by_role("combobox", name="Model").select_option("Breeze Small (house)")
    expect(dialog.get_by_text("Breeze Small ignores this setting.")).to_have_count(1)


@on_desk
def test_defaults_count_for_chats_without_a_value(defaults: Served, open_page: Open, size: tuple[int, int]) -> None:
    """They are set on the settings page, shown in the chat as inherited, and can be turned around there."""
    server = defaults
    page = open_page(f"{server.url}/settings#chat-defaults", *size)
    form = page.get_by_role("form", name="Chat defaults")
    form.get_by_role("textbox", name="System prompt").fill("Answer in Breton.")
    form.get_by_role("spinbutton", name="Temperature").fill("0.2")
    form.get_by_role("checkbox", name="Use memory").uncheck()
    assert axe_violations(page) == []
    button(form, "Save defaults").click()
    expect(form.get_by_role("status")).to_have_text("Saved")
    stored = server.get("/api/chat-defaults")
    assert (stored["system"], stored["temperature"], stored["memory"]) == ("Answer in Breton.", 0.2, "none")
    sid = server.session(title="Inherits")
    page.goto(f"{server.url}/c/{sid}")
    expect(page.get_by_text("Memory off", exact=True)).to_be_visible()
    dialog = open_settings(page)
    expect(dialog.get_by_role("textbox", name="System prompt")).to_have_value("Answer in Breton.")
    expect(dialog.get_by_role("spinbutton", name="Temperature")).to_have_attribute("placeholder", "Default (0.2)")
    expect(dialog.get_by_text("Changed")).to_have_count(0)
    dialog.get_by_role("textbox", name="System prompt").fill("")
    dialog.get_by_role("checkbox", name="Use memory").check()
    button(dialog, "Save").click()
    expect(page.get_by_text("Memory off", exact=True)).to_have_count(0)
    assert (server.look(sid)["system"], server.look(sid)["memory"]) == ("", "default")


def test_unsaved_changes_survive_another_page_or_are_asked_about(defaults: Served, open_page: Open) -> None:
    """Defaults that were edited are there when one comes back; a dialog asks before it is left for them."""
    page = open_page(f"{defaults.url}/settings#chat-defaults")
    form = page.get_by_role("form", name="Chat defaults")
    form.get_by_role("textbox", name="System prompt").fill("Answer in Breton.")
    expect(form.get_by_role("status")).to_have_text("Unsaved changes")
    button(page, "New chat").click()
    dialog = open_settings(page)
    dialog.get_by_role("spinbutton", name="Temperature").fill("0.4")
    dialog.get_by_role("link", name="Edit defaults").click()
    question = page.get_by_role("dialog", name="Discard changes?")
    button(question, "Cancel").click()
    expect(dialog.get_by_role("spinbutton", name="Temperature")).to_have_value("0.4")
    dialog.get_by_role("link", name="Edit defaults").click()
    button(question, "Discard").click()
    expect(form.get_by_role("textbox", name="System prompt")).to_have_value("Answer in Breton.")
    button(form, "Save defaults").click()
    expect(form.get_by_role("status")).to_have_text("Saved")
    expect(button(form, "Discard")).to_have_count(0)
    assert defaults.get("/api/chat-defaults")["system"] == "Answer in Breton."


@pytest.mark.parametrize("height", [560, 800])
def test_the_buttons_are_in_view_however_small_the_window_is(demo: Served, open_page: Open, height: int) -> None:
    """Save stays at the bottom edge while the fields scroll."""
    page = open_page(demo.url, 360, height)
    dialog = open_settings(page)
    for scrolled in (0, 10_000):
        dialog.evaluate("(box, top) => box.scrollTo(0, top)", scrolled)
        expect(button(dialog, "Save")).to_be_in_viewport(ratio=1)
        bottoms = dialog.evaluate(
            "box => [box, box.querySelector('form').lastElementChild].map(it => it.getBoundingClientRect().bottom)"
        )
        assert abs(bottoms[0] - bottoms[1]) < 2  # the border and a part of a pixel: no field shows below them


def test_a_new_chat_has_its_settings_from_the_first_message_on(demo: Served, open_page: Open) -> None:
    """They are chosen before the chat exists, and survive a reload."""
    page = open_page(demo.url)
    dialog = open_settings(page)
    dialog.get_by_role("spinbutton", name="Temperature").fill("0")
    dialog.get_by_role("checkbox", name="Use memory").uncheck()
    button(dialog, "Save").click()
    page.reload()
    expect(page.get_by_text("Memory off", exact=True)).to_be_visible()
    send(page, QUESTION, shows="double fisherman")
    wait_idle(page)
    stored = demo.look(session_of(page))
    assert (stored["temperature"], stored["memory"]) == (0, "none")
    button(page, "New chat").click()
    expect(button(page, "Chat settings")).to_be_visible()  # the next one begins with the defaults


def test_new_chats_have_the_model_that_was_chosen_last(demo: Served, open_page: Open) -> None:
    """Also after a reload, and in the chat's later turns; the default is chosen again in the settings of a chat."""
    page = open_page(demo.url)
    page.get_by_role("button", name="Model: Atlas Large").click()
    page.get_by_role("combobox", name="Search models").fill("bree")
    page.keyboard.press("Enter")
    send(page, QUESTION, shows="double fisherman")
    wait_idle(page)
    page.goto(demo.url)
    expect(page.get_by_role("button", name="Model: Breeze Small")).to_be_visible()
    expect(button(page, "Chat settings (changed)")).to_be_visible()
    page.goto(f"{demo.url}/settings")
    expect(page.get_by_role("region", name="Models")).to_contain_text(
        "New chats start with the model that you picked last: Breeze Small."
    )
    page.goto(demo.url)
    send(page, QUESTION, shows="double fisherman")
    wait_idle(page)
    assert demo.look(session_of(page))["model"] == "house/breeze-small"
    dialog = open_settings(page)
    button(dialog, "Reset Model").click()
    button(dialog, "Save").click()
    button(page, "New chat").click()
    expect(page.get_by_role("button", name="Model: Atlas Large")).to_be_visible()


def test_an_answer_is_tried_again_with_another_model(demo: Served, open_page: Open) -> None:
    """The chat keeps its model and settings; only this answer has the other one."""
    sid = demo.session(title="Again", temperature=0.5)
    page = open_page(f"{demo.url}/c/{sid}")
    send(page, QUESTION, shows="double fisherman")
    wait_idle(page)
    button(page, "Regenerate with another model").click()
    page.get_by_role("menuitem", name="Breeze Small").click()
    expect(page.get_by_role("group", name="Versions")).to_contain_text("2/2")
    wait_idle(page)
    expect(answers(page)).to_contain_text("Breeze Small")
    assert demo.answer(sid)["model"] == "house/breeze-small"
    assert (demo.look(sid)["model"], demo.look(sid)["temperature"]) == (None, 0.5)
    expect(message_box(page)).to_be_focused()
