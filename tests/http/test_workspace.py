"""The files that a session's agent works on: nothing outside of its directory is shown, whatever a client or an agent
does, and nothing that is in it is lost on the way."""

import errno
import io
import os
import socket
import threading
import time
import zipfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import anyio
import httpx
import pytest

from holdfast.app.bounded_threads import run_bounded
from holdfast.app.session_workspaces import SessionWorkspaces
from holdfast.core.errors import PathRefusedError, WorkspaceUnavailableError
from holdfast.core.ids import LOCAL, SessionId
from holdfast.core.session import Session
from holdfast.tools.workspace import path_search
from holdfast.tools.workspace.tree import WorkspaceTree
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import GUARD

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 32
ATTACH = "attach"
FILE_CALLS = ("file", "preview", "content", "artifact", ATTACH)
DIRECTORY_CALLS = ("entries", "archive")
CALLS = (*FILE_CALLS, *DIRECTORY_CALLS)


class Workspace:
    """A session with files in its own directory."""

    def __init__(self, server: Served) -> None:
        self.server = server
        self.sid = server.session()
        self.root = server.data_dir / "workspaces" / self.sid
        self.root.mkdir(parents=True)

    def write(self, name: str | bytes, content: bytes = b"text\n") -> Path:
        path = Path(os.fsdecode(os.path.join(os.fsencode(self.root), os.fsencode(name))))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def ask(
        self, call: str, path: str | None = None, headers: dict[str, str] | None = None, **more: Any
    ) -> httpx.Response:
        parameters = {name: value for name, value in {"path": path, **more}.items() if value is not None}
        url = f"/api/sessions/{self.sid}/workspace/{call}".rstrip("/")
        if call == ATTACH:
            return self.server.http.post(url, json=parameters, headers=headers)
        return self.server.http.get(url, params=parameters, headers=headers)

    def raw(self, call: str, query: str) -> httpx.Response:
        """With a query that no client library has touched."""
        url = f"/api/sessions/{self.sid}/workspace/{call}?{query}"
        if call == ATTACH:
            return self.ask(call, unquote(query.removeprefix("path=").partition("&")[0]))
        return self.server.http.get(httpx.URL(self.server.url).copy_with(raw_path=url.encode("latin-1")))

    def names(self, path: str = "", **more: Any) -> list[str]:
        found = self.ask("entries", path, **more)
        assert found.status_code == 200, found.text
        return [item["name"] for item in found.json()["items"]]


@pytest.fixture
def files(shared: Served) -> Workspace:
    return Workspace(shared)


# ---- what is there ----


def test_a_chat_without_files_says_so(shared: Served) -> None:
    """Before the agent has written anything there is no directory, and reading it creates none."""
    sid = shared.session()
    where = shared.get(f"/api/sessions/{sid}/workspace")
    assert (where["available"], where["origin"]) == (False, "private")
    assert "has not worked with files" in where["reason"]
    found = shared.http.get(f"/api/sessions/{sid}/workspace/entries")
    assert (found.status_code, found.json()["type"]) == (409, "workspace-unavailable")
    changes = shared.get(f"/api/sessions/{sid}/workspace/changes")
    assert changes["items"] == []
    assert "has not worked with files" in changes["unavailable"]
    assert not (shared.data_dir / "workspaces" / sid).exists()


def test_a_level_is_listed_with_directories_first(files: Workspace) -> None:
    """Names are sorted without regard to case; hidden ones come on request; the filter looks at names."""
    for name in ("b.txt", "A.txt", "src/main.py", ".env", ".git/config", "Docs/x"):
        files.write(name)
    assert files.names() == ["Docs", "src", "A.txt", "b.txt"]
    assert files.names(hidden=True) == [".git", "Docs", "src", ".env", "A.txt", "b.txt"]
    assert files.names("src") == ["main.py"]
    assert files.names(filter="TXT") == ["A.txt", "b.txt"]
    where = files.ask("").json()
    assert where == {"directory": str(files.root.resolve()), "origin": "private", "available": True, "reason": None}


def test_pages_are_complete_while_files_come_and_go(files: Workspace) -> None:
    """A page begins after the last name of the one before, so nothing is shown twice or left out."""
    for n in range(25):
        files.write(f"{n:02}.txt")
    files.write("zz/in")
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = files.ask("entries", "", limit=7, cursor=cursor).json()
        seen += [item["name"] for item in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
        files.write("00-new.txt")
        (files.root / "03.txt").unlink(missing_ok=True)
    assert seen == ["zz", *(f"{n:02}.txt" for n in range(25))]
    assert page["total"] == 26  # one went, one came
    bad = files.ask("entries", "", cursor="bm90IGEgY3Vyc29y")
    assert (bad.status_code, bad.json()["field"]) == (422, "cursor")


def test_a_huge_directory_opens_at_once(fresh: Served) -> None:
    """100,000 files: the first rows take under 300 ms of the processor and bounded memory."""
    files = Workspace(fresh)
    directory = os.open(files.root, os.O_RDONLY)
    try:
        for n in range(100_000):
            os.close(os.open(f"file-{n:06}.txt", os.O_CREAT | os.O_WRONLY, dir_fd=directory))
    finally:
        os.close(directory)
    files.ask("entries", "", limit=1)  # what is loaded once
    before, started = fresh.resident, fresh.cpu_seconds
    page = files.ask("entries", "", limit=100).json()
    taken = fresh.cpu_seconds - started
    assert [item["name"] for item in page["items"]] == [f"file-{n:06}.txt" for n in range(100)]
    assert (page["total"], page["complete"]) == (100_000, True)
    assert taken < 0.3, taken
    assert fresh.resident - before < 30_000_000
    assert files.ask("entries", "", filter="99999").json()["total"] == 1


def test_the_head_of_a_huge_file_is_shown_in_little_memory(fresh: Served) -> None:
    """A file of 5 GB: its beginning, and its end by range, within 50 MB of memory."""
    files = Workspace(fresh)
    path = files.write("huge.log", b"first line\n" * 100_000)
    os.truncate(path, 5 * 1024**3)
    files.ask("file", "huge.log")
    before = fresh.resident
    preview = files.ask("preview", "huge.log").json()
    assert preview["text"].startswith("first line\n")
    assert preview["truncated"]
    assert preview["file"]["size"] == 5 * 1024**3
    end = files.ask("content", "huge.log", {"Range": "bytes=-4"})
    assert (end.status_code, end.content) == (206, b"\0" * 4)
    assert end.headers["content-range"] == f"bytes {5 * 1024**3 - 4}-{5 * 1024**3 - 1}/{5 * 1024**3}"
    assert fresh.resident - before < 50_000_000


# ---- names ----

LAST = "\U0010fffd"  # In the order of names
ODD_NAMES = (
    b"line\nbreak.txt",
    b"carriage\rreturn",
    b"tab\there",
    b"not-utf8-\xff\xfe.txt",
    b"overlong-\xc0\xae\xc0\xae",
    b"100% done.txt",
    b"%2e%2e",
    b"%41",
    b"back\\slash",
    b"..\\..\\evil",
    b"...",
    b"~",
    b"-rf",
    b"a?b&c#d=e+f",
    b" leading and trailing ",
    "\u202etxt.exe".encode(),
    "größe".encode(),
    "\u2028".encode(),
    b"\x1b[31mred",
    b"x" * 255,
    "\u0800".encode() * 85,
)


@pytest.mark.parametrize("name", ODD_NAMES)
def test_every_name_leads_back_to_its_file(files: Workspace, name: bytes) -> None:
    """A name is valid JSON, its path opens exactly this file, alone in a page and after a cursor, and in an archive."""
    files.write(name, b"of " + name)
    files.write(LAST, b"another")
    page = files.ask("entries", "", hidden=True, limit=1).json()
    (item,) = page["items"]
    assert item["name"].encode().decode() == name.decode("utf-8", "replace")
    assert "\n" not in item["path"]
    assert files.ask("content", item["path"]).content == b"of " + name
    assert files.ask("file", item["path"]).json()["path"] == item["path"]
    rest = files.ask("entries", "", hidden=True, cursor=page["next"]).json()
    assert [each["name"] for each in rest["items"]] == [LAST]
    archive = zipfile.ZipFile(io.BytesIO(files.ask("archive", "").content))
    assert archive.testzip() is None
    assert sorted(archive.read(each) for each in archive.namelist()) == sorted([b"of " + name, b"another"])
    assert not any(c in each for each in archive.namelist() for c in "\\\n\r:")


# ---- what a message mentions ----


def test_paths_are_found_by_a_part(files: Workspace) -> None:
    """Names that begin with it come first, then names, then paths; dependencies and hidden files are left out, and
    links are not followed."""
    for name in ("main.py", "src/main.py", "src/domain.py", "main/x.py", ".main", "node_modules/main.py", "b/x.py"):
        files.write(name)
    (files.root / "main-link").symlink_to("src")
    found = files.ask("search", query="MAIN").json()
    paths = ["main", "main-link", "main.py", "src/main.py", "src/domain.py", "main/x.py"]
    assert [item["path"] for item in found["items"]] == paths
    assert found["complete"]
    assert [item["path"] for item in files.ask("search", query="src/ma").json()["items"]] == ["src/main.py"]
    assert files.ask("search", query=".ma").json()["items"][0]["path"] == ".main"
    assert len(files.ask("search", limit=3).json()["items"]) == 3
    assert files.ask("search", query="/etc/passwd").json()["items"] == []


def test_a_search_through_many_files_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends at its limit, or when nobody waits, and says that it is not complete."""
    for n in range(30):
        (tmp_path / f"{n}.txt").touch()
    tree = WorkspaceTree(tmp_path, tmp_path / "data", own=True)
    assert path_search.find_paths(tree, "", 5, threading.Event()).complete
    monkeypatch.setattr(path_search, "MAX_SCANNED", 10)
    assert not path_search.find_paths(tree, "", 5, threading.Event()).complete
    monkeypatch.setattr(path_search, "_CHECK_EVERY", 1)
    stop = threading.Event()
    stop.set()
    assert path_search.find_paths(tree, "", 5, stop).items == ()


def test_a_mentioned_file_is_attached_as_it_is_now(files: Workspace) -> None:
    """The copy stays as it was, has the name of the path, and is UTF-8; what models cannot read, is empty or is too
    large is refused."""
    path = files.write("src/main.py", b"x = 1\n")
    attached = files.ask("attach", "src/main.py")
    assert attached.status_code == 201, attached.text
    path.write_bytes(b"x = 2\n")
    file = attached.json()
    assert (file["name"], file["media_type"], file["size"]) == ("src/main.py", "text/plain", 6)
    assert files.server.http.get(f"/api/files/{file['id']}/content").content == b"x = 1\n"
    files.write("photo.png", PNG)
    assert files.ask("attach", "photo.png").json()["media_type"] == "image/png"
    files.write("wide.txt", "größe".encode("utf-16"))
    wide = files.ask("attach", "wide.txt").json()["id"]
    assert files.server.http.get(f"/api/files/{wide}/content").content.decode().endswith("größe")
    for name, content in {"a.bin": b"\0\1", "empty.txt": b"", "long.txt": b"x" * (256 * 1024 + 1)}.items():
        files.write(name, content)
        refused = files.ask("attach", name)
        assert (refused.status_code, refused.json()["type"]) == (409, "path-refused"), name


# ---- attacks ----

OUTSIDE = (
    "..",
    "../",
    "../../holdfast.db",
    "sub/../../x",
    "sub/..",
    "./..",
    "/etc/passwd",
    "//etc/passwd",
    "/",
    "%2e%2e/x",
    "%2E%2e",
    ".%2e",
    "%2e./x",
    "..%2f..%2fetc%2fpasswd",
    "sub%2f..%2fx",
    "%00",
    "a%00.txt",
    "a\0b",
    "%",
    "%zz",
    "%c0%ae%c0%ae/%c0%ae%c0%ae/etc",
    "%25",
    "..\\..\\etc",
    "\u2025/\uff0e\uff0e/etc",
    "x/" * 65,
    "y" * 256,
    "z" * 5000,
    "file.txt/x",
    "file.txt/./x",
)


@pytest.mark.parametrize("call", CALLS)
def test_no_path_leads_out(shared: Served, call: str) -> None:
    """`..` in every encoding, absolute paths, NUL and paths that are too long or deep are refused by every call."""
    files = Workspace(shared)
    files.write("file.txt")
    files.write("sub/in.txt")
    for path in OUTSIDE:
        for found in (files.ask(call, path), files.raw(call, f"path={quote(quote(path, safe=''), safe='')}")):
            assert found.status_code in (404, 409, 422), (path, found.status_code, found.text[:200])
            assert b"root:" not in found.content
    for query in ("path=%2e%2e%2f%2e%2e", "path=..%252f..", "path=%ff", "path=a&path=../x", "path=%C0%AE%C0%AE%2fetc"):
        found = files.raw(call, query)
        assert found.status_code in (404, 409, 422), (query, found.text[:200])


@pytest.fixture
def hostile(files: Workspace, tmp_path: Path) -> Iterator[Workspace]:
    """A workspace full of what leads elsewhere or blocks."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    links: dict[str, str | Path] = {
        "absolute": outside / "secret.txt",
        "directory": outside,
        "relative": "../../../secret.txt",
        "root": "/",
        "data": files.server.data_dir,
        "database": files.server.data_dir / "holdfast.db",
        "up": "..",
        "up-and-back": f"../{files.sid}/real.txt",
        "proc": "/proc/self/environ",
        "proc-root": "/proc/self/root",
        "fd": "/dev/fd/0",
        "loop": "loop",
        "loop-a": "loop-b",
        "loop-b": "loop-a",
        "growing": "growing/growing",
        "broken": "nothing",
    }
    files.write("real.txt")
    for name, target in links.items():
        (files.root / name).symlink_to(target)
    (files.root / "chain").symlink_to("directory/secret.txt")
    os.mkfifo(files.root / "fifo")
    with ExitStack() as opened:
        listener = opened.enter_context(socket.socket(socket.AF_UNIX))
        here = Path.cwd()
        os.chdir(files.root)  # the address of a socket is short
        try:
            listener.bind("socket")
        finally:
            os.chdir(here)
        if os.geteuid() == 0:
            os.mknod(files.root / "device", 0o600 | 0o020000, os.makedev(1, 3))
        yield files


HOSTILE = (
    *("absolute", "directory", "directory/secret.txt", "relative", "root", "root/etc/passwd", "data", "database"),
    *("data/holdfast.db", "up", "up-and-back", "proc", "proc-root", "fd", "loop", "loop-a", "growing", "broken"),
    *("chain", "fifo", "socket", "device", "real.txt/x"),
)


@pytest.mark.parametrize("call", CALLS)
def test_links_and_special_files_are_not_opened(hostile: Workspace, call: str) -> None:
    """No call follows a link out of the workspace, or waits for a pipe, a socket or a device."""
    for path in HOSTILE:
        found = hostile.ask(call, path)
        assert found.status_code in (404, 409), (path, found.status_code, found.text[:200])
        assert found.headers["content-type"] == "application/problem+json"
        assert "secret" not in found.json()["detail"].replace("secret.txt", "")


def test_hostile_entries_are_listed_as_what_they_are(hostile: Workspace) -> None:
    """Links out lead nowhere in the list, special files are named, and an archive contains the real file only."""
    listed = {item["name"]: item for item in hostile.ask("entries", "").json()["items"]}
    kinds = {(item["kind"], item["target"]) for name, item in listed.items() if name != "real.txt"}
    assert kinds == {("link", None), ("other", None)}
    archive = zipfile.ZipFile(io.BytesIO(hostile.ask("archive", "").content))
    assert archive.namelist() == ["real.txt", "LEFT_OUT.txt"]
    assert b"'fifo' is left out: it is a pipe, socket or device." in archive.read("LEFT_OUT.txt")


def test_links_inside_are_followed(files: Workspace) -> None:
    """Relative, absolute and chained links open what they lead to, as long as that is inside."""
    files.write("lib/deep/code.py", b"code")
    (files.root / "lib" / "up").symlink_to("../lib/deep")
    (files.root / "direct").symlink_to("lib/deep/code.py")
    (files.root / "full").symlink_to(files.root.resolve() / "lib")
    (files.root / "chained").symlink_to("full/up/code.py")
    for path in ("lib/up/code.py", "direct", "full/deep/code.py", "chained", "full/up/code.py"):
        assert files.ask("content", path).content == b"code", path
    assert files.names("full/up") == ["code.py"]
    targets = {item["name"]: item["target"] for item in files.ask("entries", "").json()["items"]}
    assert targets == {"lib": None, "chained": "file", "direct": "file", "full": "directory"}


def test_a_workspace_that_was_replaced_by_a_link_is_not_followed(files: Workspace, tmp_path: Path) -> None:
    """An agent whose directory is a link to another place shows nothing of that place."""
    (tmp_path / "secret.txt").write_text("secret")
    files.root.rmdir()
    files.root.symlink_to(tmp_path)
    for call in CALLS:
        found = files.ask(call, "secret.txt" if call in FILE_CALLS else "")
        assert (found.status_code, found.json()["type"]) == (409, "workspace-unavailable")


def test_swapping_links_in_never_wins(files: Workspace, tmp_path: Path) -> None:
    """While a directory is a real one and a link to another place by turns, only what is really inside is read. Both
    are met often."""
    (tmp_path / "file.txt").write_text("secret")
    files.write("real/file.txt", b"inside")
    (files.root / "link").symlink_to(tmp_path)
    stop, seen = threading.Event(), Counter[str]()

    def swap() -> None:
        while not stop.is_set():
            for name in ("real", "link"):
                os.rename(files.root / name, files.root / "name")
                os.rename(files.root / "name", files.root / name)
                (files.root / "swapped").unlink(missing_ok=True)
                (files.root / "swapped").symlink_to(name)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        while min(seen["inside"], seen["outside"]) < 20:
            found = files.ask("content", "swapped/file.txt")
            assert found.content != b"secret"
            refused = found.status_code != 200 and "leads out of the workspace" in found.json()["detail"]
            seen["outside" if refused else found.text] += 1
    finally:
        stop.set()
        thread.join()


def test_a_session_id_leads_nowhere_else(files: Workspace) -> None:
    """Another session's files, sessions that do not exist, and ids that look like paths."""
    files.write("mine.txt", b"mine")
    other = files.server.session()
    for sid in (other, "ses_unknown", "..", "%2e%2e", f"..%2f{files.sid}", f"{files.sid}%2f..%2f{other}", "."):
        for call in ("", *CALLS):
            url = f"/api/sessions/{sid}/workspace/{call}?path=mine.txt".encode()
            how: dict[str, Any] = {"json": {"path": "mine.txt"}} if call == ATTACH else {}
            method, address = "POST" if how else "GET", httpx.URL(files.server.url).copy_with(raw_path=url)
            found = files.server.http.request(method, address, **how)
            assert b"mine" not in found.content.replace(b"mine.txt", b"")
            assert found.status_code in (404, 409, 422) or (call == "" and sid == other)


def test_every_call_needs_a_login(start: Start) -> None:
    """With a password nothing is answered without it; with a token it is."""
    server = start(password="correct horse battery", require_password=True)
    for call in ("", *(f"/{each}?path=x" for each in CALLS)):
        found = server.http.get(f"/api/sessions/ses_x/workspace{call}")
        assert (found.status_code, found.json()["type"]) == (401, "unauthorized"), call


# ---- content ----


@pytest.mark.parametrize(
    ("wanted", "status", "content", "about"),
    [
        ("bytes=0-3", 206, b"0123", "bytes 0-3/10"),
        ("bytes=4-", 206, b"456789", "bytes 4-9/10"),
        ("bytes=-3", 206, b"789", "bytes 7-9/10"),
        ("bytes=8-99", 206, b"89", "bytes 8-9/10"),
        ("bytes=-99", 206, b"0123456789", "bytes 0-9/10"),
        ("bytes=10-", 416, None, "bytes */10"),
        ("bytes=-0", 416, None, "bytes */10"),
        ("bytes=5-2", 200, b"0123456789", None),
        ("bytes=0-1,4-5", 200, b"0123456789", None),
        ("lines=1-2", 200, b"0123456789", None),
        ("bytes=-", 200, b"0123456789", None),
        ("bytes=a-b", 200, b"0123456789", None),
        (f"bytes={'9' * 30}-", 200, b"0123456789", None),
    ],
)
def test_ranges(files: Workspace, wanted: str, status: int, content: bytes | None, about: str | None) -> None:
    """One range is answered as RFC 9110 says; what is not understood gets the whole file."""
    files.write("ten.bin", b"0123456789")
    found = files.ask("content", "ten.bin", {"Range": wanted})
    assert found.status_code == status
    assert found.headers.get("content-range") == about
    if content is not None:
        assert found.content == content


def test_a_range_of_another_version_is_not_given(files: Workspace) -> None:
    """`If-Range` with an older ETag gets the whole new file; `If-None-Match` saves sending the same again."""
    path = files.write("notes.txt", b"old notes")
    etag = files.ask("content", "notes.txt").headers["etag"]
    for known in (etag, f"W/{etag}", f'"other, one" , {etag}', "*"):
        assert files.ask("content", "notes.txt", {"If-None-Match": known}).status_code == 304, known
    for other in ('"other"', f'"x{etag[1:]}', f'"a,{etag[1:]}', etag.strip('"'), ""):
        assert files.ask("content", "notes.txt", {"If-None-Match": other}).status_code == 200, other
    assert files.ask("content", "notes.txt", {"Range": "bytes=0-2", "If-Range": etag}).content == b"old"
    path.write_bytes(b"newer notes")
    found = files.ask("content", "notes.txt", {"Range": "bytes=0-2", "If-Range": etag})
    assert (found.status_code, found.content) == (200, b"newer notes")


@pytest.mark.parametrize(
    ("name", "content", "media_type", "served", "disposition"),
    [
        ("a.png", PNG, "image/png", "image/png", "inline"),
        ("a.pdf", b"%PDF-1.7", "application/pdf", "application/pdf", "inline"),
        ("a.wav", b"RIFF\0\0\0\0WAVEfmt ", "audio/wav", "audio/wav", "inline"),
        ("a.mp4", b"\0\0\0\x18ftypisom", "video/mp4", "video/mp4", "inline"),
        ("a.png", b"<script>", "text/plain", "text/plain; charset=utf-8", "attachment"),
        ("a.html", b"<script>", "text/html", "text/plain; charset=utf-8", "attachment"),
        ("a.svg", b"<svg/>", "image/svg+xml", "text/plain; charset=utf-8", "attachment"),
        ("a.xhtml", b"<html/>", "text/plain", "text/plain; charset=utf-8", "attachment"),
        ("a.js", b"alert(1)", "text/plain", "text/plain; charset=utf-8", "attachment"),
        ("a.csv", b"a,b\n", "text/csv", "text/plain; charset=utf-8", "attachment"),
        ("a.html", b"\x7fELF\0\0", "application/octet-stream", "application/octet-stream", "attachment"),
    ],
)
def test_only_inert_types_are_displayed(
    files: Workspace, name: str, content: bytes, media_type: str, served: str, disposition: str
) -> None:
    """The type comes from the content. Nothing is ever a document, a script or a style sheet of our origin."""
    files.write(name, content)
    about = files.ask("file", name).json()
    assert (about["media_type"], about["size"]) == (media_type, len(content))
    found = files.ask("content", name)
    assert found.content == content
    assert found.headers["content-type"] == served
    assert found.headers["content-disposition"].startswith(disposition)
    assert found.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in found.headers["content-security-policy"]
    assert ("sandbox" in found.headers["content-security-policy"]) == (name != "a.pdf")
    assert files.ask("content", name, download=True).headers["content-disposition"].startswith("attachment")


def test_a_name_cannot_add_a_header(files: Workspace) -> None:
    """Line breaks and quotes in a name stay within the value of `Content-Disposition`."""
    files.write('a"\r\nSet-Cookie: x=1\r\n.txt')
    (item,) = files.ask("entries", "").json()["items"]
    found = files.ask("content", item["path"])
    assert "set-cookie" not in found.headers
    assert found.headers["content-disposition"].endswith("filename*=UTF-8''a%22%0D%0ASet-Cookie%3A%20x%3D1%0D%0A.txt")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("größe\n".encode(), "größe\n"),
        (b"\xef\xbb\xbfwith a mark", "with a mark"),
        ("sixteen".encode("utf-16"), "sixteen"),
        (b"caf\xe9 in Latin-1", "café in Latin-1"),
        (b"", ""),
        (b"\0\1\2\3", None),
        (bytes(range(256)) * 4, None),
    ],
)
def test_previews_are_text_or_nothing(files: Workspace, content: bytes, text: str | None) -> None:
    """UTF-8, UTF-16 and Latin-1 become text; binary files have no preview."""
    files.write("x", content)
    preview = files.ask("preview", "x").json()
    assert (preview["text"], preview["truncated"]) == (text, False)


def test_a_preview_ends_between_characters(files: Workspace) -> None:
    """A limit within a character leaves that character out instead of a question mark."""
    files.write("x.md", "größe".encode())
    preview = files.ask("preview", "x.md", limit=3).json()
    assert (preview["text"], preview["truncated"]) == ("gr", True)


# ---- archives ----


def test_a_folder_becomes_an_archive(files: Workspace) -> None:
    """Bytes, empty directories and executable bits are in it; it is named after the folder."""
    files.write("project/run.sh", b"#!/bin/sh\n").chmod(0o755)
    files.write("project/data/big.bin", os.urandom(700_000))
    (files.root / "project" / "empty").mkdir()
    files.write("elsewhere.txt")
    found = files.ask("archive", "project")
    assert found.headers["content-disposition"] == "attachment; filename*=UTF-8''project.zip"
    archive = zipfile.ZipFile(io.BytesIO(found.content))
    assert sorted(archive.namelist()) == ["data/", "data/big.bin", "empty/", "run.sh"]
    assert archive.read("data/big.bin") == (files.root / "project/data/big.bin").read_bytes()
    assert archive.getinfo("run.sh").external_attr >> 16 & 0o777 == 0o755


def test_an_archive_has_limits(files: Workspace) -> None:
    """Too many files or too many bytes are refused before anything is sent."""
    os.truncate(files.write("large/huge.bin"), 3 * 1024**3)
    for n in range(201):
        directory = files.root / "many" / str(n)
        directory.mkdir(parents=True)
        for name in range(100):
            os.close(os.open(directory / str(name), os.O_CREAT | os.O_WRONLY))
    found = files.ask("archive", "large")
    assert (found.status_code, found.json()["detail"]) == (
        409,
        "'large' cannot be opened: its files are larger than 2 GB together.",
    )
    found = files.ask("archive", "many")
    assert (found.status_code, "20,000" in found.json()["detail"]) == (409, True)


def test_a_large_folder_below_is_refused(files: Workspace) -> None:
    """More files than an archive may have are never left out silently, wherever they are."""
    directory = files.root / "project" / "large"
    directory.mkdir(parents=True)
    for n in range(20_010):
        os.close(os.open(directory / str(n), os.O_CREAT | os.O_WRONLY))
    for path in ("", "project", "project/large"):
        found = files.ask("archive", path)
        assert (found.status_code, "20,000" in found.json()["detail"]) == (409, True)


def test_an_archive_notes_what_is_left_out_within_limits(files: Workspace) -> None:
    """A thousand notes and a number; what is left out counts as well, so that nobody can fill the memory with links."""
    files.write("a.txt")
    for n in range(1500):
        (files.root / f"link{n}").symlink_to("a.txt")
    archive = zipfile.ZipFile(io.BytesIO(files.ask("archive", "").content))
    notes = archive.read("LEFT_OUT.txt").decode().splitlines()
    assert (len(notes), notes[-1]) == (1001, "… and 500 more")
    for n in range(1500, 20_000):
        (files.root / f"link{n}").symlink_to("a.txt")
    assert files.ask("archive", "").status_code == 409


def test_files_of_an_archive_have_different_names(files: Workspace) -> None:
    """Escaped names meet no others, and the text about what is left out does not replace a file."""
    contents = {b"a:b": b"1", b"a%3Ab": b"2", b"LEFT_OUT.txt": b"3", b"left_out2.txt": b"4"}
    for name, content in contents.items():
        files.write(name, content)
    (files.root / "link").symlink_to("a:b")
    archive = zipfile.ZipFile(io.BytesIO(files.ask("archive", "").content))
    found = [archive.read(name) for name in archive.namelist() if name != "LEFT_OUT3.txt"]
    assert sorted(found) == sorted(contents.values())
    assert archive.read("LEFT_OUT3.txt") == b"'link' is left out: it is a link.\n"


def test_an_archive_that_nobody_reads_is_given_up(fresh: Served) -> None:
    """A client that leaves frees what was opened for it, so further archives can be made."""
    files = Workspace(fresh)
    files.write("big.bin", os.urandom(30_000_000))
    for _ in range(5):
        with fresh.http.stream("GET", f"/api/sessions/{files.sid}/workspace/archive") as response:
            assert response.status_code in (200, 429)
            next(response.iter_raw(1))
    ends_at = time.monotonic() + 30
    while (found := files.ask("archive", "")).status_code == 429:
        assert time.monotonic() < ends_at
    assert zipfile.ZipFile(io.BytesIO(found.content)).testzip() is None


# ---- artifacts ----


def test_artifacts_have_an_origin_of_their_own(files: Workspace) -> None:
    """HTML and SVG come with a policy without network; scripts run only on request and in a frame."""
    files.write("page.html", b"<h1>Hi</h1>")
    found = files.ask("artifact", "page.html", {"Sec-Fetch-Dest": "iframe"}, scripts=True)
    policy = found.headers["content-security-policy"]
    assert found.headers["content-type"] == "text/html; charset=utf-8"
    assert policy.endswith("sandbox allow-scripts")
    assert "default-src 'none'" in policy
    assert not {"'self'", "http:", "https:", "*"} & set(policy.replace("frame-ancestors 'self'", "").split())
    for headers, scripts in (({}, True), ({"Sec-Fetch-Dest": "iframe"}, False)):
        found = files.ask("artifact", "page.html", headers, scripts=scripts)
        assert found.headers["content-security-policy"].endswith("; sandbox")
    refused = files.ask("artifact", "page.html", {"Sec-Fetch-Dest": "document"})
    assert (refused.status_code, refused.json()["type"]) == (409, "path-refused")
    files.write("page.txt", b"<h1>Hi</h1>")
    assert files.ask("artifact", "page.txt", {"Sec-Fetch-Dest": "iframe"}).status_code == 409


# ---- the adapter ----


def of_session(data_dir: Path, name: str = "", content: bytes = b"") -> Session:
    session = Session(SessionId("ses_1"), LOCAL, 0.0, 0.0)
    if name:
        (data_dir / "workspaces" / session.id).mkdir(parents=True, exist_ok=True)
        (data_dir / "workspaces" / session.id / name).write_bytes(content)
    return session


def test_another_server_of_a_cluster_says_that_it_has_no_files(tmp_path: Path) -> None:
    """The files are on the server that ran the agent; the others give this as the reason, and list nothing."""
    here, there = (SessionWorkspaces(tmp_path / name, None, is_cluster=True) for name in ("here", "there"))
    session = of_session(tmp_path / "here", "a.txt")

    async def check() -> None:
        assert (await here.locate(session)).available
        elsewhere = await there.locate(session)
        assert not elsewhere.available
        assert "this server of the cluster does not have them" in (elsewhere.reason or "")
        with pytest.raises(WorkspaceUnavailableError):
            await there.file(session, "a.txt")

    anyio.run(check)


def test_a_file_that_changes_while_it_is_sent_is_broken_off(tmp_path: Path) -> None:
    """Another file of the same name is refused before the first byte; one that became shorter never looks complete."""
    files = SessionWorkspaces(tmp_path, None, is_cluster=False)
    session = of_session(tmp_path, "a.bin", b"a" * 600_000)
    path = tmp_path / "workspaces" / session.id / "a.bin"

    async def check() -> None:
        file = await files.file(session, "a.bin")
        chunks = files.content(session, file, 0, file.size)
        assert await anext(chunks)
        os.truncate(path, 1000)
        with pytest.raises(EOFError):
            async for _ in chunks:
                pass
        with pytest.raises(PathRefusedError, match="being changed"):
            await anext(files.content(session, file, 0, file.size))

    anyio.run(check)


class FailingReads:
    """Lets reads of a file fail as those of a damaged disk do, from one of them on."""

    def __init__(self, path: Path, good: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.found = path.stat()
        self.good = good
        self.read, self.pread = os.read, os.pread
        monkeypatch.setattr(os, "read", lambda fd, n: self.checked(fd) and self.read(fd, n))
        monkeypatch.setattr(os, "pread", lambda fd, n, at: self.checked(fd) and self.pread(fd, n, at))

    def checked(self, fd: int) -> bool:
        if os.path.samestat(os.fstat(fd), self.found):
            if self.good == 0:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            self.good -= 1
        return True


async def taken(chunks: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


@pytest.mark.parametrize("good", [0, 1])
def test_a_damaged_file_does_not_break_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, good: int) -> None:
    """A file that cannot be read is left out. If that turns out in the middle of it, the archive is broken off."""
    files = SessionWorkspaces(tmp_path, None, is_cluster=False)
    session = of_session(tmp_path, "bad.bin", os.urandom(600_000))
    of_session(tmp_path, "good.txt", b"good")
    FailingReads(tmp_path / "workspaces" / session.id / "bad.bin", good, monkeypatch)

    async def check() -> None:
        _, chunks = await files.archive(session, "")
        if good:
            with pytest.raises(EOFError):
                await taken(chunks)
            return
        archive = zipfile.ZipFile(io.BytesIO(await taken(chunks)))
        assert archive.testzip() is None
        assert archive.read("good.txt") == b"good"
        assert archive.read("LEFT_OUT.txt") == b"'bad.bin' cannot be opened: input/output error.\n"

    anyio.run(check)


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error before the first byte is refused with the reason, not broken off."""
    files = SessionWorkspaces(tmp_path, None, is_cluster=False)
    session = of_session(tmp_path, "bad.bin", b"bad")

    async def check() -> None:
        file = await files.file(session, "bad.bin")
        FailingReads(tmp_path / "workspaces" / session.id / "bad.bin", 0, monkeypatch)
        with pytest.raises(PathRefusedError, match="input/output error"):
            await anext(files.content(session, file, 0, file.size))

    anyio.run(check)


def test_a_file_that_grows_is_archived_as_it_was(tmp_path: Path) -> None:
    """An agent that appends to its log all the time does not keep the archive from ending."""
    files = SessionWorkspaces(tmp_path, None, is_cluster=False)
    content = os.urandom(1_000_000)
    session = of_session(tmp_path, "a.log", content)

    async def check() -> None:
        _, chunks = await files.archive(session, "")
        first = await anext(chunks)
        with (tmp_path / "workspaces" / session.id / "a.log").open("ab") as log:
            log.write(b"more")
        archive = zipfile.ZipFile(io.BytesIO(first + await taken(chunks)))
        assert archive.read("a.log") == content

    anyio.run(check)


def test_an_archive_is_closed_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing files of a slow disk does not hold up the other requests, and is done even if the client has left."""
    files = SessionWorkspaces(tmp_path, None, is_cluster=False)
    session = of_session(tmp_path, "a.bin", os.urandom(600_000))
    closed_in: list[int] = []
    close = os.close

    def note(fd: int) -> None:
        closed_in.append(threading.get_ident())
        close(fd)

    async def check() -> None:
        _, chunks = await files.archive(session, "")
        with anyio.CancelScope() as scope:
            await anext(chunks)
            monkeypatch.setattr(os, "close", note)
            scope.cancel()
            await chunks.aclose()  # type: ignore[attr-defined]
        monkeypatch.undo()
        assert closed_in
        assert threading.get_ident() not in closed_in

    anyio.run(check)


def test_a_file_system_that_hangs_takes_only_its_threads() -> None:
    """However many requests give up: a thread that hangs is still taken. When it is back, so are all threads."""
    threads, answers = anyio.CapacityLimiter(3), threading.Event()
    running: list[None] = []

    def hang() -> None:
        running.append(None)
        answers.wait(GUARD)
        running.pop()

    async def check() -> None:
        with anyio.fail_after(GUARD):
            for _ in range(5):
                async with anyio.create_task_group() as group:
                    for _ in range(20):
                        group.start_soon(run_bounded, threads, hang)
                    while len(running) < 3:
                        await anyio.lowlevel.checkpoint()
                    group.cancel_scope.cancel()
            assert len(running) == threads.borrowed_tokens == 3
            answers.set()
            assert [await run_bounded(threads, lambda n=n: n) for n in range(10)] == [*range(10)]  # type: ignore[misc]
            while threads.borrowed_tokens:
                await anyio.lowlevel.checkpoint()
        assert not running

    anyio.run(check)


def test_a_download_from_a_file_system_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its client may leave at once. The files are closed when the file system answers, not while they are read."""
    files = SessionWorkspaces(tmp_path, None, is_cluster=False)
    session = of_session(tmp_path, "a.bin", os.urandom(600_000))
    hangs, answers = threading.Event(), threading.Event()
    opened = len(os.listdir("/proc/self/fd"))

    def pread(fd: int, count: int, at: int, read: Any = os.pread) -> bytes:
        hangs.set()
        answers.wait(GUARD)
        return bytes(read(fd, count, at))

    async def check() -> None:
        file = await files.file(session, "a.bin")
        monkeypatch.setattr(os, "pread", pread)
        chunks = files.content(session, file, 0, file.size)
        with anyio.fail_after(GUARD):
            async with anyio.create_task_group() as group:
                group.start_soon(anext, chunks, b"")
                await anyio.to_thread.run_sync(hangs.wait, GUARD)
                group.cancel_scope.cancel()
            assert files.threads.borrowed_tokens == 1
            answers.set()
            while files.threads.borrowed_tokens:
                await anyio.lowlevel.checkpoint()

    anyio.run(check)
    monkeypatch.undo()
    assert len(os.listdir("/proc/self/fd")) == opened
