"""The first start: which models are found, connecting others, and skipping it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from holdfast.server.authenticator import set_password
from holdfast.storage.key_file import KeyFile
from tests.browser.chat_page import (
    answers,
    axe_violations,
    button,
    check_transcript,
    notice,
    send,
    session_of,
    start_chatting,
    wait_idle,
)
from tests.browser.conftest import ConsoleErrors, Open
from tests.browser.model_server import model_server
from tests.chat.conftest import chat_forker
from tests.fork_server import Fresh, ServerForker
from tests.http.client import Served
from tests.http.conftest import Start, starting
from tests.servers import free_port

__all__ = ["chat_forker"]


@pytest.fixture
def start(tmp_path: Path, chat_forker: ServerForker) -> Iterator[Start]:
    """Servers with real agents, that know no model."""
    with starting(lambda **settings: Served(chat_forker, tmp_path / "data", **settings)) as begin:
        yield begin


def _is_setup(page: Page) -> None:
    expect(page.get_by_role("heading", name="Welcome to Holdfast")).to_be_visible()
    expect(page.get_by_text("Searching this computer")).to_have_count(0)


def test_a_server_on_this_machine_is_found_and_answers(start: Start, open_page: Open) -> None:
    """The first start shows Ollama with its models and leads into a chat; it is not offered again."""
    with model_server("llama3.2", "qwen3:8b") as ollama:
        served = start(environment={"OLLAMA_HOST": ollama.address})
        page = open_page(served.url)
        _is_setup(page)
        found = page.get_by_role("list", name="Models found").get_by_role("listitem")
        expect(found).to_contain_text(["Ollama"])
        expect(found).to_contain_text(["2 models: llama3.2, qwen3:8b"])
        expect(page.get_by_text("Default model: llama3.2")).to_be_visible()
        assert axe_violations(page) == []
        start_chatting(page)
        send(page, "Hello", "Hello from the model.")
        check_transcript(page, served)
        page.goto(served.url)
        expect(page.get_by_role("heading", name="What can I help with?")).to_be_visible()


def test_a_server_that_comes_and_goes_is_noticed_without_a_reload(start: Start, open_page: Open) -> None:
    """An answer that fails greys its models out; the picker says why once, and Retry finds them again."""
    with model_server("atlas", "breeze") as first:
        port = first.server_port
        served = start(environment={"OPENAI_API_BASE_URL": f"http://{first.address}/v1"})
        served.post("/api/setup/done", expect=204)
        page = open_page(served.url)
        send(page, "Hello", "Hello from the model.")
        wait_idle(page)
    send(page, "Again")
    expect(notice(page)).to_contain_text(f"Can't reach OpenAI (127.0.0.1:{port}). Check that it is running.")
    page.get_by_role("button", name="Model: atlas").click()
    picker = page.get_by_role("dialog", name="Model and agent")
    expect(picker.get_by_role("option", name="breeze")).to_be_disabled()
    retry = picker.get_by_role("option", name="Retry OpenAI")
    expect(retry).to_have_count(1)
    with model_server("atlas", "breeze", port=port):
        retry.click()
        expect(retry).to_have_count(0)
        expect(picker.get_by_role("option", name="breeze")).to_be_enabled()


def test_a_setting_that_the_model_rejects_can_be_left_out(start: Start, open_page: Open) -> None:
    """The failure leads to the settings of the chat, where the default shows, and to an answer without the setting."""
    with model_server("picky", rejects="temperature") as picky:
        served = start(environment={"OPENAI_API_BASE_URL": f"http://{picky.address}/v1"})
        served.post("/api/setup/done", expect=204)
        served.call("PATCH", "/api/chat-defaults", {"temperature": 0.3}, 200)
        page = open_page(served.url)
        send(page, "Hello")
        expect(notice(page)).to_contain_text("picky does not accept this temperature")
        assert axe_violations(page) == []
        button(page, "Open chat settings").click()
        dialog = page.get_by_role("dialog", name="Chat settings")
        temperature = dialog.get_by_role("spinbutton", name="Temperature")
        expect(temperature).to_have_attribute("placeholder", "Default (0.3)")
        button(dialog, "Use the model’s default for Temperature").click()
        expect(temperature).to_be_focused()
        expect(temperature).to_have_attribute("placeholder", "Model default")
        expect(dialog.get_by_text("Changed")).to_be_visible()
        button(dialog, "Cancel").click()
        button(page, "Try without it").click()
        expect(answers(page).last).to_contain_text("Hello from the model.")
        check_transcript(page, served)
        assert served.look(session_of(page))["temperature"] == "model_default"


def test_images_are_switched_on_for_an_added_server(start: Start, open_page: Open) -> None:
    """A server that does not say what its models see is sent images after that; a new key does not undo it."""
    with model_server("atlas") as other:
        served = start()
        served.post("/api/setup/done", expect=204)
        name = served.post("/api/providers", {"base_url": other.address}, 200)["name"]

        def abilities() -> list[str]:
            (model,) = (item for item in served.get("/api/models")["items"] if item["id"] == f"{name}/atlas")
            return list(model["abilities"])

        assert "images" not in abilities()
        page = open_page(f"{served.url}/settings")
        images = page.get_by_role("checkbox", name="Its models can read images")
        images.click()
        expect(images).to_be_checked()
        assert {"images", "tools"} <= set(abilities())
        served.call("PUT", f"/api/settings/keys/{name}", {"key": "a-new-key"}, 200)
        assert "images" in abilities()
        images.click()
        expect(images).not_to_be_checked()
        assert "images" not in abilities()
        served.refused("not-found", "PATCH", "/api/providers/none", {"images": True})


def test_a_server_is_tested_before_it_is_kept(start: Start, open_page: Open, console_errors: ConsoleErrors) -> None:
    """A wrong address and a missing key are explained; the right ones show the models, which can be used and removed.
    The whole form works with the keyboard."""
    console_errors.expect("422")  # what is no address is refused
    served, closed = start(), free_port()
    with model_server("atlas", "breeze", key="secret-key") as other:
        page = open_page(served.url)
        _is_setup(page)
        expect(page.get_by_text("None yet.")).to_be_visible()
        page.get_by_label("Provider", exact=True).select_option("Ollama, LM Studio or another server")
        page.get_by_label("API key (optional)").fill("for another provider")
        page.get_by_label("Provider", exact=True).select_option("OpenAI")
        expect(page.get_by_label("API key", exact=True)).to_be_empty()  # it would be sent there
        page.get_by_label("Provider", exact=True).select_option("Ollama, LM Studio or another server")
        problem, address = page.get_by_role("alert"), page.get_by_label("Address")
        address.fill("not a url at all")
        address.press("Enter")
        expect(problem).to_contain_text("Enter a valid address")
        address.fill(f"127.0.0.1:{closed}")
        address.press("Enter")
        expect(problem).to_contain_text(f"No server answers at http://127.0.0.1:{closed}/v1 (connection refused)")
        address.fill(f"http://{other.address}/v1/chat/completions")
        address.press("Enter")
        expect(problem).to_contain_text(f"The server at http://{other.address}/v1 needs an API key.")
        page.get_by_label("API key (optional)").fill("secret-key")
        page.get_by_label("API key (optional)").press("Enter")
        name = f"127-0-0-1-{other.server_port}"
        expect(page.get_by_text(f"Connected to {other.address}. 2 models: atlas, breeze.")).to_be_visible()
        expect(page.get_by_role("list", name="Models found")).to_contain_text("2 models: atlas, breeze")
        button(page, "Start chatting").focus()
        page.keyboard.press("Enter")
        send(page, "Hello", "Hello from the model.")
        page.goto(f"{served.url}/settings")
        button(page, f"Replace key: {name}").click()
        page.get_by_role("dialog").get_by_role("textbox").fill("wrong-key")
        page.keyboard.press("Enter")
        rejected = f"{other.address} rejected the API key (invalid api key). Check the key."
        expect(page.get_by_role("dialog").get_by_role("alert")).to_have_text(rejected)
        page.keyboard.press("Escape")
        button(page, f"Remove: {name}").click()
        button(page.get_by_role("dialog"), "Remove").click()
        expect(button(page, f"Remove: {name}")).to_have_count(0)
        assert all(model["provider"] != name for model in served.get("/api/models")["items"])
        assert "secret-key" not in (served.data_dir / "keys.json").read_text()


def test_a_rejected_key_is_not_kept(start: Start, open_page: Open, console_errors: ConsoleErrors) -> None:
    """A provider's answer to a wrong key is shown, and nothing is stored."""
    with model_server("gpt-5", key="right") as provider:
        served = start(environment={"OPENAI_API_BASE_URL": f"http://{provider.address}/v1"})
        page = open_page(f"{served.url}/setup", width=390, height=780)
        _is_setup(page)
        page.get_by_label("Provider", exact=True).select_option("OpenAI")
        key = page.get_by_label("API key", exact=True)
        key.fill("wrong-key")
        expect(page.get_by_text(f"sent only to http://{provider.address}/v1")).to_be_visible()
        button(page, "Test and connect").click()
        expect(page.get_by_role("alert")).to_contain_text("rejected the API key")
        assert served.get("/api/settings")["providers"][-1]["key_source"] is None
        key.fill("right")
        button(page, "Test and connect").click()
        expect(page.get_by_text("Connected to OpenAI. 1 model: gpt-5.")).to_be_visible()
        overflow = "() => document.documentElement.scrollWidth - innerWidth"
        assert page.evaluate(overflow) <= 0


def test_a_download_that_fails_is_explained(tmp_path: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """The small model is offered where it can run; the reason of a failure is shown, and it can be tried again."""
    pytest.importorskip("xllamacpp")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with Served(Fresh("tests.chat.server"), tmp_path / "data") as served:
        page = open_page(served.ready().url)
        _is_setup(page)
        download = page.get_by_role("button", name="Download a small model")
        download.click()
        expect(page.get_by_role("alert")).to_contain_text("weights could not be downloaded: pip failed")
        expect(download).to_be_enabled()
        page.close()


def test_a_download_asks_for_the_password_again(
    tmp_path: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch, console_errors: ConsoleErrors
) -> None:
    """It installs a program, so a login of a while ago is not enough; after the password it goes on by itself."""
    pytest.importorskip("xllamacpp")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    console_errors.expect("403 (Forbidden)")
    (tmp_path / "data").mkdir(mode=0o700)
    keys = KeyFile(tmp_path / "data")
    set_password(keys, "correct horse")
    with Served(Fresh("tests.chat.server"), tmp_path / "data") as served:
        page = open_page(f"{served.ready().url}/setup")
        page.get_by_label("Password").fill("correct horse")
        page.keyboard.press("Enter")
        _is_setup(page)
        keys.change(
            lambda ring: replace(
                ring, logins=tuple(replace(login, created_at=login.created_at - 400) for login in ring.logins)
            )
        )
        download = page.get_by_role("button", name="Download a small model")
        download.click()
        asking = page.get_by_role("dialog", name="Confirm your password")
        button(asking, "Cancel").click()
        expect(download).to_be_enabled()
        expect(page.get_by_role("alert")).to_have_count(0)
        download.click()
        asking.get_by_label("Password").fill("correct horse")
        button(asking, "Continue").click()
        expect(page.get_by_role("alert")).to_contain_text("weights could not be downloaded: pip failed")
        assert served.complaints.count("model download started") == 1
        page.close()


def test_it_can_be_skipped(start: Start, open_page: Open) -> None:
    """Without a model the demo answers and says so; the offer is then a link."""
    served = start()
    page = open_page(served.url)
    _is_setup(page)
    button(page, "Skip for now").click()
    expect(page.get_by_text("No language model is connected")).to_be_visible()
    page.reload()
    page.get_by_role("link", name="Connect a model").click()
    _is_setup(page)
