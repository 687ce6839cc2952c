"""The installable app: its service worker, notifications and the offline page."""

import json
import time
import urllib.parse
from collections.abc import Iterator
from typing import Any, Final

import pytest
from playwright.sync_api import BrowserContext, CDPSession, Page, expect

from tests.browser.chat_page import (
    GUARD_MS,
    answers,
    axe_violations,
    button,
    check_transcript,
    message_box,
    send,
    session_of,
    wait_idle,
)
from tests.browser.conftest import ConsoleErrors, Open
from tests.browser.test_failures import HIDE, NOTED, drop_network_errors
from tests.http.client import Served
from tests.http.conftest import Start
from tests.push.service import PushServiceServer

SUBSCRIBED: Final = """told => {
  let current = null;
  const subscription = (options) => ({
    endpoint: told.endpoint, options, toJSON: () => told, unsubscribe: async () => { current = null; return true; },
  });
  PushManager.prototype.getSubscription = async () => current;
  PushManager.prototype.subscribe = async options => {
    if (options.applicationServerKey.length !== 65 || !options.userVisibleOnly) throw new Error("wrong options");
    return current = subscription(options);
  };
  Object.defineProperty(Notification, "permission", {get: () => "granted"});
  Notification.requestPermission = async () => "granted";
}"""
"""Subscribes at the push service of the test. The headless browser has none, and grants no permission."""

RECORD: Final = """() => {
  self.shown = [];
  self.registration.showNotification = async (title, options) => {
    self.shown.push({title, body: options.body, tag: options.tag, silent: options.silent, data: options.data});
  };
}"""
CLICK: Final = """data => {
  const event = new ExtendableEvent("notificationclick");
  Object.defineProperty(event, "notification", {value: {data, close() {}}});
  return new Promise(done => {
    Object.defineProperty(event, "waitUntil", {value: work => work.then(done, done)});
    self.dispatchEvent(event);
  });
}"""


class ServiceWorker:
    """The one of a page, with the notifications that it shows."""

    def __init__(self, page: Page) -> None:
        page.evaluate("navigator.serviceWorker.ready.then(() => {})")
        page.wait_for_function("() => navigator.serviceWorker.controller !== null")
        (self.worker,) = page.context.service_workers
        self._cdp: CDPSession = page.context.new_cdp_session(page)
        self._registrations: list[str] = []
        self._cdp.on("ServiceWorker.workerRegistrationUpdated", self._note)
        self._cdp.send("ServiceWorker.enable")
        self.worker.evaluate(RECORD)

    def _note(self, event: Any) -> None:
        self._registrations += [each["registrationId"] for each in event["registrations"]]

    def push(self, page: Page, content: Any) -> None:
        """As the browser does when its push service delivers a message."""
        page.wait_for_function("() => navigator.serviceWorker.controller")
        data = content if isinstance(content, str) else json.dumps(content)
        where = urllib.parse.urlsplit(page.url)
        origin = f"{where.scheme}://{where.netloc}"
        self._cdp.send(
            "ServiceWorker.deliverPushMessage",
            {"origin": origin, "registrationId": self._registrations[0], "data": data},
        )

    def wait(self, page: Page, count: int) -> list[Any]:
        """Until so many notifications were shown."""
        ends_at = time.monotonic() + GUARD_MS / 1000
        while len(found := self.shown) < count:
            assert time.monotonic() < ends_at, found
            page.wait_for_timeout(20)
        return found

    @property
    def shown(self) -> list[Any]:
        found: list[Any] = self.worker.evaluate("() => self.shown")
        return found


@pytest.fixture
def push_service() -> Iterator[PushServiceServer]:
    with PushServiceServer().running() as service:
        yield service


def worker_of(page: Page) -> ServiceWorker:
    return ServiceWorker(page)


@pytest.mark.parametrize("root", ["", "/holdfast"])
def test_the_app_can_be_installed(start: Start, open_page: Open, root: str) -> None:
    """Chromium finds nothing that is missing, also below a path of its host."""
    served = start(root_path=root)
    page = open_page(f"{served.url}/")
    worker_of(page)
    cdp = page.context.new_cdp_session(page)
    assert cdp.send("Page.getInstallabilityErrors") == {"installabilityErrors": []}
    found = cdp.send("Page.getAppManifest")
    assert found["errors"] == []
    base = served.url.removesuffix("/")
    manifest = json.loads(found["data"])
    assert {urllib.parse.urljoin(found["url"], manifest[name]) for name in ("start_url", "scope")} == {f"{base}/"}
    assert {icon.get("purpose") for icon in manifest["icons"]} >= {"any", "maskable"}
    for icon in [icon["src"] for icon in manifest["icons"]] + ["badge-96.png", "apple-touch-icon.png"]:
        assert served.http.get(urllib.parse.urljoin(found["url"], icon)).status_code == 200
    assert page.evaluate("navigator.serviceWorker.ready.then(({scope}) => scope)") == f"{base}/"
    sid = served.session(title="Below the path")
    page.goto(f"{base}/c/{sid}")
    expect(message_box(page)).to_be_visible()


def test_a_page_for_the_time_without_a_server(start: Start, open_page: Open, console_errors: ConsoleErrors) -> None:
    """U3: a page that is opened while the server is away says so, and becomes the app by itself when it is back."""
    served = start()
    page = open_page(served.url)
    worker_of(page)
    send(page, [{"say": "Kept."}], shows="Kept.")
    wait_idle(page)
    sid = session_of(page)
    served.kill()
    page.goto(f"{served.url}/c/{sid}")
    expect(page.get_by_role("heading", name="Can’t reach the server")).to_be_visible()
    expect(page.get_by_role("link", name="Try again")).to_be_visible()
    assert axe_violations(page) == []
    again = start(port=urllib.parse.urlsplit(served.url).port)
    expect(answers(page)).to_contain_text("Kept.")
    check_transcript(page, again)
    drop_network_errors(console_errors)


def test_the_service_worker_keeps_nothing(server: Served, open_page: Open) -> None:
    """Pages come from the server each time, everything else past the worker; there is no cache."""
    page = open_page(server.url)
    worker_of(page)
    seen: dict[str, bool] = {}
    page.on("response", lambda found: seen.update({urllib.parse.urlsplit(found.url).path: found.from_service_worker}))
    send(page, [{"say": "Fresh."}], shows="Fresh.")
    wait_idle(page)
    page.reload()
    expect(answers(page)).to_contain_text("Fresh.")
    assert page.evaluate("caches.keys()") == []
    assert seen.pop(f"/c/{session_of(page)}") is True
    assert not any(seen.values())


def test_a_notification_is_shown_unless_its_chat_is(server: Served, open_page: Open) -> None:
    """It says what happened in the chat's name; whoever looks at the chat sees that anyway. What is no message of the
    server is ignored."""
    page = open_page(server.url)
    send(page, [{"say": "Here."}], shows="Here.")
    wait_idle(page)
    sid, worker = session_of(page), worker_of(page)
    worker.push(page, "nothing")
    worker.push(page, {"kind": "unknown", "tag": "x", "session": None, "title": "No"})
    worker.push(page, {"kind": "done", "tag": "run_1", "session": sid, "title": "Seen"})
    worker.push(page, {"kind": "done", "tag": "run_2", "session": "ses_other", "title": "Tides"})
    worker.push(page, {"kind": "failed", "tag": "run_3", "session": "ses_other", "title": ""})
    worker.push(page, {"kind": "approval", "tag": "apr_1", "session": "ses_other", "title": "Tides"})
    found = worker.wait(page, 3)
    assert {(each["title"], each["body"], each["tag"], each["silent"]) for each in found} == {
        ("Tides", "Answer ready", "run_2", False),
        ("Holdfast", "The answer stopped early", "run_3", False),
        ("Tides", "Needs your approval", "apr_1", False),
    }
    page.evaluate(HIDE, True)
    worker.push(page, {"kind": "done", "tag": "run_1", "session": sid, "title": "Seen"})
    assert worker.wait(page, 4)[3]["title"] == "Seen"


def test_a_click_opens_the_chat(server: Served, open_page: Open) -> None:
    """In the page that is there, without loading it again, so that nothing that was typed is lost; a tool is allowed
    there and nowhere else."""
    page = open_page(server.url)
    sid = server.session(title="Elsewhere")
    run = server.begin(sid, [{"call": "c1", "name": "shell", "asks": True}])
    worker = worker_of(page)
    page.evaluate("window.same = true")
    worker.worker.evaluate(CLICK, {"session": sid})
    page.wait_for_url(f"**/c/{sid}")
    expect(page.get_by_role("group", name="Approval")).to_contain_text("shell")
    assert page.evaluate("window.same") is True
    assert server.run(run)["status"] == "waiting"


def test_notifications_are_turned_on_for_a_device(
    start: Start, push_service: PushServiceServer, open_page: Open, context: BrowserContext
) -> None:
    """From the switch to what is shown: encrypted for this browser, sent, and delivered to the service worker."""
    served = start(push_origins=[push_service.origin])
    context.add_init_script(f"({SUBSCRIBED})({json.dumps(push_service.subscribe())})")
    context.add_init_script(NOTED)
    page = open_page(f"{served.url}/settings#notifications", width=360, height=740)
    section = page.get_by_role("region", name="Notifications", exact=True)
    button(section, "Turn on notifications").press("Enter")
    expect(section.get_by_role("status")).to_have_text("Notifications are on.")
    device = section.get_by_role("listitem")
    expect(device).to_contain_text("this device")
    assert axe_violations(page) == []
    section.get_by_label("Show the chat title in notifications").uncheck()
    section.get_by_label("Needs approval or an answer").uncheck()
    page.wait_for_function(
        """() => fetch("/api/push/subscriptions").then(r => r.json()).then(({items: [{show_title, approval}]}) =>
            !show_title && !approval)"""
    )
    section.get_by_role("button", name="Test").click()
    expect(section.get_by_role("status")).to_have_text("Test notification sent.")
    expect(device).to_contain_text("Works")
    worker = worker_of(page)
    worker.push(page, push_service.wait(1)[0].content)
    assert worker.wait(page, 1)[0]["body"] == "Notifications work on this device"
    page.reload()
    expect(section.get_by_label("Needs approval or an answer")).not_to_be_checked()
    sid = served.session(title="Private")
    served.ended(served.begin(sid, [{"say": "done"}]))
    worker.push(page, push_service.wait(2)[1].content)
    told = worker.wait(page, 2)[1]
    assert (told["title"], told["body"], told["data"]) == ("Holdfast", "Answer ready", {"session": sid})
    button(section, "Turn off notifications").click()
    expect(section.get_by_role("status")).to_have_text("Notifications are off on this device.")
    expect(section.get_by_role("listitem")).to_have_count(0)
    assert served.get("/api/push/subscriptions")["items"] == []


def test_a_device_with_notifications_is_told_once(
    start: Start, push_service: PushServiceServer, open_page: Open, context: BrowserContext
) -> None:
    """U7: a hidden tab says so in its title; the notification is the service worker's alone."""
    served = start(push_origins=[push_service.origin])
    context.add_init_script(f"({SUBSCRIBED})({json.dumps(push_service.subscribe())})")
    context.add_init_script(NOTED)
    page = open_page(f"{served.url}/settings#notifications")
    button(page, "Turn on notifications").click()
    expect(button(page, "Turn off notifications")).to_be_visible()
    page.goto(served.url)
    send(page, [{"say": "Begun. "}, {"meet": "g"}, {"say": "Ended."}], shows="Begun.")
    with page.expect_response("**/api/runs?*"):
        page.evaluate(HIDE, True)
    served.order(open="g")
    page.wait_for_function("() => document.title.includes('Your answer is ready')")
    assert push_service.wait(1)[0].content["kind"] == "done"
    assert page.evaluate("window.noted") == []


def test_a_browser_without_a_push_service_says_so(server: Served, open_page: Open, context: BrowserContext) -> None:
    """Also one that blocks notifications: what to do is said."""
    page = open_page(f"{server.url}/settings#notifications")
    section = page.get_by_role("region", name="Notifications", exact=True)
    button(section, "Turn on notifications").click()
    expect(section.get_by_role("status")).to_contain_text("blocked in the browser")
    context.add_init_script("delete window.PushManager")
    page.reload()
    expect(section).to_contain_text("Home Screen")
    assert server.get("/api/push/subscriptions")["items"] == []
