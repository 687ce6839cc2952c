"""Changes that people make to the files of a session's agent: nothing outside of its directory is touched, nothing is
overwritten unseen, and nothing is lost."""

import os
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import httpx
import pytest

from holdfast.app.session_workspaces import SessionWorkspaces
from holdfast.app.workspace_editor import SessionWorkspaceEditor
from holdfast.core.file_names import parse_path
from holdfast.core.ids import LOCAL, SessionId
from holdfast.core.session import Session
from holdfast.tools.workspace import changes
from tests.http.client import Served
from tests.http.conftest import Start
from tests.http.streams import GUARD, until
from tests.http.test_workspace import HOSTILE, ODD_NAMES, OUTSIDE, Workspace, files, hostile

__all__ = ["files", "hostile"]

SAVE, CREATE, FOLDER, MOVE, MOVE_TO, UPLOAD, DELETE = "save", "create", "folder", "move", "move-to", "upload", "delete"
CHANGES = (SAVE, "save-new", CREATE, FOLDER, MOVE, MOVE_TO, UPLOAD, DELETE)
OCTETS = {"Content-Type": "application/octet-stream"}


def change(
    files: Workspace, what: str, path: str, *, etag: str = '"x"', text: str = "evil\n", **more: Any
) -> httpx.Response:
    """One of the changes to a path."""
    http, url = files.server.http, f"/api/sessions/{files.sid}/workspace"
    match what:
        case "save":
            return http.put(f"{url}/content", params={"path": path}, json={"text": text}, headers={"If-Match": etag})
        case "save-new":
            headers = {"If-None-Match": "*"}
            return http.put(f"{url}/content", params={"path": path}, json={"text": text}, headers=headers)
        case "create" | "folder":
            kind = "file" if what == CREATE else "directory"
            return http.post(f"{url}/entries", json={"path": path, "kind": kind})
        case "move":
            return http.post(f"{url}/move", json={"path": path, "to": more.get("to", "moved")})
        case "move-to":
            return http.post(f"{url}/move", json={"path": more.get("source", "real.txt"), "to": path})
        case "upload":
            content = more.get("content", b"evil\n")
            return http.post(f"{url}/upload", params={"path": path}, content=content, headers=OCTETS)
        case _:
            return http.delete(f"{url}/entries", params={"path": path})


def restore(files: Workspace, tid: str) -> httpx.Response:
    return files.server.http.post(f"/api/sessions/{files.sid}/workspace/restore", json={"id": tid})


def restored(files: Workspace, tid: str) -> bool:
    return restore(files, tid).status_code == 200


def etag(files: Workspace, path: str) -> str:
    return str(files.ask("preview", path).json()["file"]["etag"])


def snapshot(*roots: Path) -> dict[str, tuple[int, bytes | str]]:
    """Everything below the directories, without following links."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for root in roots:
        for path in root.rglob("*"):
            if path.name.startswith("holdfast.db") or "journal" in path.name:
                continue
            mode = path.lstat().st_mode
            content: bytes | str = (
                os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
            )
            found[str(path)] = (mode, content)
    return found


# ---- save ----


def test_a_text_is_saved_as_the_version_that_was_read(files: Workspace) -> None:
    """The file has the new text and its old mode, the response has the new ETag, and nothing else is left."""
    path = files.write("src/run.sh", b"echo old\n")
    path.chmod(0o750)
    preview = files.ask("preview", "src/run.sh").json()
    assert preview["editable"]
    saved = change(files, SAVE, "src/run.sh", etag=preview["file"]["etag"], text="echo größe\n")
    assert saved.status_code == 200, saved.text
    assert path.read_bytes() == "echo größe\n".encode()
    assert path.stat().st_mode & 0o7777 == 0o750
    assert saved.json() == files.ask("file", "src/run.sh").json()
    assert change(files, SAVE, "src/run.sh", etag=saved.json()["etag"], text="").status_code == 200
    assert os.listdir(path.parent) == ["run.sh"]


def test_a_byte_order_mark_is_kept(files: Workspace) -> None:
    """Editors do not see the mark, and a save puts it back."""
    path = files.write("a.csv", b"\xef\xbb\xbfold")
    assert files.ask("preview", "a.csv").json()["text"] == "old"
    assert change(files, SAVE, "a.csv", etag=etag(files, "a.csv"), text="new").status_code == 200
    assert path.read_bytes() == b"\xef\xbb\xbfnew"


@pytest.mark.parametrize(
    ("content", "editable"),
    [
        (b"", True),
        ("größe\r\n".encode(), True),
        (b"\xef\xbb\xbfmark", True),
        ("sixteen".encode("utf-16"), False),
        (b"caf\xe9", False),
        (b"a" * 8192 + b"\xff", False),
        (b"a" * 8192 + b"\0", False),
        (b"\0\1", False),
        (b"x" * (512 * 1024 + 1), False),
    ],
)
def test_only_what_a_save_gives_back_is_editable(files: Workspace, content: bytes, editable: bool) -> None:
    """Complete UTF-8 is; other encodings, binary files and the beginning of a long text are not."""
    files.write("x", content)
    assert files.ask("preview", "x").json()["editable"] is editable


def test_a_link_is_not_editable(files: Workspace) -> None:
    """A text that is shown through a link is not offered for editing, because a save goes through none."""
    files.write("dir/a.txt")
    (files.root / "link").symlink_to("dir")
    assert not files.ask("preview", "link/a.txt").json()["editable"]
    refused = change(files, SAVE, "link/a.txt", etag=etag(files, "link/a.txt"))
    assert (refused.status_code, refused.json()["type"]) == (409, "path-refused")


def test_conditions_mean_what_http_says(files: Workspace) -> None:
    """RFC 9110: what is created is 201, what exists is 412, `*` and lists match, weak ETags do not, and the new ETag is
    a header too."""

    def put(path: str, **headers: str) -> httpx.Response:
        url = f"/api/sessions/{files.sid}/workspace/content"
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return files.server.http.put(url, params={"path": path}, json={"text": "new"}, headers=named)

    created = put("a.txt", If_None_Match="*")
    assert (created.status_code, created.headers["etag"]) == (201, created.json()["etag"])
    again = put("a.txt", If_None_Match="*")
    assert (again.status_code, again.json()["type"]) == (412, "path-exists")
    assert put("a.txt", If_Match="*").status_code == 200
    saved = put("a.txt", If_Match=f'"x", {etag(files, "a.txt")}')
    assert (saved.status_code, saved.headers["etag"]) == (200, etag(files, "a.txt"))
    assert put("a.txt", If_Match=f"W/{etag(files, 'a.txt')}").status_code == 412
    assert put("none.txt", If_Match="*").status_code == 412


def test_the_second_of_two_writers_gets_both_versions(files: Workspace) -> None:
    """A version that is not the current one is refused with the current text and ETag, by which it can be replaced."""
    path = files.write("a.txt", b"old")
    first = etag(files, "a.txt")
    assert change(files, SAVE, "a.txt", etag=first, text="theirs").status_code == 200
    refused = change(files, SAVE, "a.txt", etag=first, text="mine")
    assert (refused.status_code, refused.json()["type"], refused.json()["text"]) == (412, "file-changed", "theirs")
    assert path.read_bytes() == b"theirs"
    assert change(files, SAVE, "a.txt", etag=refused.json()["etag"], text="mine").status_code == 200
    assert path.read_bytes() == b"mine"
    path.write_bytes(b"\0binary")
    refused = change(files, SAVE, "a.txt", etag=first)
    assert (refused.status_code, refused.json()["text"]) == (412, None)
    path.unlink()
    refused = change(files, SAVE, "a.txt", etag=first)
    assert (refused.status_code, refused.json()["etag"], refused.json()["text"]) == (412, None, None)
    assert change(files, "save-new", "a.txt", text="again").status_code == 201
    exists = change(files, "save-new", "a.txt")
    assert (exists.status_code, exists.json()["type"]) == (412, "path-exists")
    assert path.read_bytes() == b"again"


def test_of_many_writers_at_once_one_wins(files: Workspace) -> None:
    """Of saves of the same version exactly one is accepted; all others get a conflict, and the file is what won."""
    path = files.write("a.txt", b"old")
    for _ in range(5):
        version = etag(files, "a.txt")
        with ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(change, files, SAVE, "a.txt", etag=version, text=f"of {n}") for n in range(8)]
        done = [each.result() for each in asked]
        winners = [n for n, found in enumerate(done) if found.status_code == 200]
        assert len(winners) == 1
        assert {found.status_code for found in done} == {200, 412}
        assert path.read_text() == f"of {winners[0]}"


def test_a_save_says_which_version_it_replaces(files: Workspace) -> None:
    """Without `If-Match` or `If-None-Match: *`, with both, or with too long a text nothing is saved."""
    path = files.write("a.txt", b"old")
    url = f"/api/sessions/{files.sid}/workspace/content"
    put = files.server.http.put
    for headers in ({}, {"If-None-Match": '"x"'}, {"If-Match": etag(files, "a.txt"), "If-None-Match": "*"}):
        found = put(url, params={"path": "a.txt"}, json={"text": "new"}, headers=headers)
        assert (found.status_code, found.json()["field"]) == (422, "If-Match")
    for text in ("x" * (2 * 1024**2 + 1), "ü" * (1024**2 + 1)):
        assert change(files, SAVE, "a.txt", etag=etag(files, "a.txt"), text=text).status_code == 422
    assert path.read_bytes() == b"old"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_may_not_be_written_is_not_replaced(files: Workspace) -> None:
    """Replacing a file asks for its own permissions, not only for those of its folder."""
    path = files.write("a.txt", b"old")
    path.chmod(0o444)
    assert not files.ask("preview", "a.txt").json()["editable"]
    assert change(files, SAVE, "a.txt", etag=etag(files, "a.txt")).status_code == 409
    assert path.read_bytes() == b"old"


def test_a_crash_during_a_save_leaves_one_version(start: Start) -> None:
    """`kill -9` while texts are saved: the file is one of them as a whole, and the next save works."""
    versions = ["a" * 900_000, "b" * 1_000_000]
    sid = ""
    for attempt in range(4):
        server = start()
        files = Workspace(server) if attempt == 0 else files_of(server, sid)
        sid = files.sid
        if attempt == 0:
            files.write("a.txt", versions[0].encode())
        saved = threading.Semaphore(0)

        def save(files: Workspace = files, saved: threading.Semaphore = saved) -> None:
            version = etag(files, "a.txt")
            for n in range(10_000):
                try:
                    version = change(files, SAVE, "a.txt", etag=version, text=versions[n % 2]).json()["etag"]
                except httpx.HTTPError:
                    return
                saved.release()

        thread = threading.Thread(target=save)
        thread.start()
        for _ in range(3 + attempt):
            assert saved.acquire(timeout=30)
        server.kill()
        thread.join()
        assert (files.root / "a.txt").read_text() in versions


def files_of(server: Served, sid: str) -> Workspace:
    found = object.__new__(Workspace)
    found.server, found.sid, found.root = server, sid, server.data_dir / "workspaces" / sid
    return found


# ---- create, move, upload ----


def test_files_and_folders_are_created_and_moved(files: Workspace) -> None:
    """A new file is empty; a moved folder has everything in it; the responses are entries of the list."""
    assert change(files, FOLDER, "src").status_code == 201
    created = change(files, CREATE, "src/a.py")
    assert created.status_code == 201
    assert created.json() == files.ask("entries", "src").json()["items"][0]
    files.write("src/lib/b.py", b"b")
    moved = change(files, MOVE, "src", to="source")
    assert (moved.status_code, moved.json()["path"], moved.json()["kind"]) == (200, "source", "directory")
    assert change(files, MOVE, "source/lib/b.py", to="c.py").status_code == 200
    assert files.names() == ["source", "c.py"]
    assert (files.root / "c.py").read_bytes() == b"b"
    assert files.names("source") == ["lib", "a.py"]


def test_nothing_is_overwritten(files: Workspace) -> None:
    """Creating, moving, uploading and restoring to a name that exists changes neither file nor folder."""
    files.write("a.txt", b"a")
    files.write("b.txt", b"b")
    files.write("dir/in.txt")
    (files.root / "empty").mkdir()
    (files.root / "link").symlink_to("nowhere")
    deleted = change(files, DELETE, "b.txt").json()["id"]
    files.write("b.txt", b"new")
    before = snapshot(files.root)
    for target in ("a.txt", "dir", "empty", "link"):
        for what in ("save-new", CREATE, FOLDER, UPLOAD):
            found = change(files, what, target)
            status = 412 if what == "save-new" else 409
            assert (found.status_code, found.json()["type"]) == (status, "path-exists"), (what, target, found.text)
        for source in ("b.txt", "dir", "empty", "link"):
            found = change(files, MOVE, source, to=target)
            assert found.status_code == 409, (source, target, found.text)
    assert restore(files, deleted).json()["type"] == "path-exists"
    assert snapshot(files.root) == before


def test_a_folder_is_not_moved_into_itself(files: Workspace) -> None:
    """Not directly, not deeper, and not onto itself."""
    files.write("a/b/c.txt")
    before = snapshot(files.root)
    for source, target in (
        ("a", "a/x"),
        ("a", "a/b/x"),
        ("a/b", "a/b/b"),
        ("a", "a"),
        ("a", "./a"),
        ("a/b", "a/b/c.txt/d"),
    ):
        assert change(files, MOVE, source, to=target).status_code == 409, (source, target)
    assert snapshot(files.root) == before


def test_a_race_for_one_name_has_one_winner(files: Workspace) -> None:
    """Files that are moved to the same name at once: one arrives, all others stay where they are."""
    for n in range(8):
        files.write(f"{n}.txt", b"%d" % n)
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda n: change(files, MOVE, f"{n}.txt", to="one.txt").status_code, range(8)))
    assert sorted(done) == [200, *[409] * 7]
    won = done.index(200)
    assert (files.root / "one.txt").read_bytes() == b"%d" % won
    assert all((files.root / f"{n}.txt").read_bytes() == b"%d" % n for n in range(8) if n != won)


def test_an_upload_appears_when_it_is_complete(files: Workspace) -> None:
    """Any bytes, in one piece; one that breaks off or is too large leaves nothing."""
    content = os.urandom(3_000_000)
    uploaded = change(files, UPLOAD, "photo.bin", content=content)
    assert (uploaded.status_code, uploaded.json()["size"]) == (201, len(content))
    assert (files.root / "photo.bin").read_bytes() == content
    assert change(files, UPLOAD, "empty.bin", content=b"").status_code == 201

    def broken() -> Iterator[bytes]:
        yield b"x" * 2_000_000
        assert not (files.root / "broken.bin").exists()
        raise ConnectionError

    with pytest.raises(ConnectionError):
        change(files, UPLOAD, "broken.bin", content=broken())
    large = change(files, UPLOAD, "large.bin", content=(b"x" * 1_000_000 for _ in range(60)))
    assert large.status_code == 413
    assert sorted(files.names()) == ["empty.bin", "photo.bin"]
    url = f"/api/sessions/{files.sid}/workspace/upload"
    for kind in ("text/plain", "multipart/form-data", "application/x-www-form-urlencoded"):
        found = files.server.http.post(url, params={"path": "x"}, headers={"Content-Type": kind}, content=b"x")
        assert found.status_code == 415


# ---- the trash ----


def test_what_is_deleted_can_be_restored(files: Workspace) -> None:
    """Files, folders and links come back with their bytes, modes and targets."""
    files.write("dir/run.sh", b"run").chmod(0o755)
    files.write("dir/deep/data.bin", os.urandom(100_000))
    (files.root / "dir/link").symlink_to("/etc/passwd")
    files.write("a.txt", b"a")
    (files.root / "link").symlink_to("dir")
    before = snapshot(files.root)
    ids = []
    for path in ("a.txt", "link", "dir"):
        deleted = change(files, DELETE, path)
        assert (deleted.status_code, deleted.json()["path"]) == (200, path)
        ids.append(deleted.json()["id"])
    assert files.names() == []
    listed = files.ask("trash").json()["items"]
    assert [item["path"] for item in listed] == ["dir", "link", "a.txt"]
    assert [item["kind"] for item in listed] == ["directory", "link", "file"]
    for tid in ids:
        assert restore(files, tid).status_code == 200
        assert restore(files, tid).status_code == 404
    assert snapshot(files.root) == before
    assert files.ask("trash").json()["items"] == []
    for tid in ("..", "../x", "0" * 16, "", "x" * 100, ".", ids[0].upper()):
        assert restore(files, tid).status_code == 404


def test_a_session_has_its_own_trash(files: Workspace) -> None:
    """What another session deleted can be neither listed nor restored."""
    files.write("a.txt")
    tid = change(files, DELETE, "a.txt").json()["id"]
    other = Workspace(files.server)
    assert other.ask("trash").json()["items"] == []
    assert restore(other, tid).status_code == 404


def test_the_trash_is_emptied(files: Workspace) -> None:
    """One deleted file, or everything, is erased for good; an unknown one is an error, and nothing else is touched."""
    for name in ("a.txt", "b.txt", "keep.txt"):
        files.write(name)
    ids = [change(files, DELETE, name).json()["id"] for name in ("a.txt", "b.txt")]
    url = f"/api/sessions/{files.sid}/workspace/trash"
    for unknown in ("0" * 16, "../..", "..%2f..", "\0"):
        assert files.server.http.delete(url, params={"id": unknown}).status_code == 404, unknown
    assert files.server.http.delete(url, params={"id": ids[0]}).json() == {"erased": 1}
    assert not restored(files, ids[0])
    assert [item["id"] for item in files.ask("trash").json()["items"]] == [ids[1]]
    assert files.server.http.delete(url).json() == {"erased": 1}
    assert files.server.http.delete(url).json() == {"erased": 0}
    assert files.ask("trash").json()["items"] == []
    assert os.listdir(files.root) == ["keep.txt"]


def test_the_trash_has_limits(files: Workspace) -> None:
    """The oldest items are erased; what is too much for all of it is not deleted."""
    os.truncate(files.write("huge.bin"), 1024**3 + 1)
    refused = change(files, DELETE, "huge.bin")
    assert (refused.status_code, "trash" in refused.json()["detail"]) == (409, True)
    deep = "/".join("d" * 70)
    files.write(f"deep/{deep}/x")
    assert change(files, DELETE, "deep").status_code == 409
    os.truncate(files.write("half.bin"), 600 * 1024**2)
    first = change(files, DELETE, "half.bin").json()["id"]
    os.truncate(files.write("half.bin"), 600 * 1024**2)
    second = change(files, DELETE, "half.bin").json()["id"]
    assert [item["id"] for item in files.ask("trash").json()["items"]] == [second]
    assert restore(files, first).status_code == 404
    for n in range(101):
        change(files, DELETE, change(files, CREATE, f"{n}.txt").json()["path"])
    assert len(files.ask("trash").json()["items"]) == 100
    assert len(list((files.server.data_dir / "trash" / files.sid).iterdir())) == 100


# ---- attacks ----


@pytest.mark.parametrize("what", CHANGES)
def test_no_change_leads_out(shared: Served, what: str) -> None:
    """`..` in every encoding, absolute paths, NUL, the workspace itself and paths that are too long change nothing
    outside, and none of what is inside. At most a file with an odd name is made inside."""
    files, other = Workspace(shared), Workspace(shared)
    for name in ("file.txt", "real.txt", "sub/in.txt"):
        files.write(name)
        other.write(name)
    before, outside = snapshot(files.root), snapshot(other.root)
    for path in (*OUTSIDE, "", ".", "./", "//"):
        for written in (path, quote(path, safe="")):
            neighbors = set(os.listdir(files.root.parent))
            found = change(files, what, written)
            if found.status_code in (200, 201):
                assert found.json()["path"].count("/") <= 1, (written, found.text)
                if what == MOVE_TO:
                    os.rename(files.root / os.fsdecode(parse_path(found.json()["path"])[0]), files.root / "real.txt")
                else:
                    assert change(files, DELETE, found.json()["path"]).status_code == 200
            else:
                assert found.status_code in (404, 409, 412, 422), (written, found.status_code, found.text)
            assert snapshot(files.root) == before, written
            assert snapshot(other.root) == outside
            assert set(os.listdir(files.root.parent)) == neighbors


@pytest.mark.parametrize("what", CHANGES)
def test_no_change_goes_through_a_link_or_into_a_special_file(hostile: Workspace, tmp_path: Path, what: str) -> None:
    """Neither what a link leads to nor a pipe, socket or device is changed, and nothing waits for one. Links themselves
    can be renamed and deleted."""
    before = snapshot(tmp_path)
    listed = {path.name for path in hostile.root.iterdir()}
    itself = {name for name in listed if (hostile.root / name).is_symlink()}
    for path in HOSTILE:
        for below in (path, f"{path}/new.txt"):
            found = change(hostile, what, below, to="moved")
            if what in (MOVE, DELETE) and below in itself:
                assert found.status_code == 200, (below, found.text)
                os.rename(hostile.root / "moved", hostile.root / below) if what == MOVE else restore(
                    hostile, found.json()["id"]
                )
                continue
            if what == DELETE or below not in ("device", "device/new.txt") or (hostile.root / "device").exists():
                assert found.status_code in (404, 409, 412), (below, found.status_code, found.text)
    assert snapshot(tmp_path) == before
    assert {path.name for path in hostile.root.iterdir()} == listed


@pytest.mark.parametrize("name", ODD_NAMES)
def test_every_name_can_be_changed(files: Workspace, name: bytes) -> None:
    """Save, move, delete and restore change exactly the file of this name."""
    path = files.write(name, b"old")
    (item,) = files.ask("entries", "", hidden=True).json()["items"]
    assert change(files, SAVE, item["path"], etag=etag(files, item["path"]), text="new").status_code == 200
    assert path.read_bytes() == b"new"
    tid = change(files, DELETE, item["path"]).json()["id"]
    assert not path.exists()
    assert restore(files, tid).json()["path"] == item["path"]
    assert change(files, MOVE, item["path"], to="plain").status_code == 200
    assert change(files, MOVE, "plain", to=item["path"]).status_code == 200
    assert path.read_bytes() == b"new"
    assert change(files, UPLOAD, f"d{item['path'][:60]}", content=b"up").status_code in (201, 422)


def test_swapping_links_in_never_wins_a_change(files: Workspace, tmp_path: Path) -> None:
    """While a folder is a real one and a link to another place by turns, nothing is written, moved or deleted there."""
    (tmp_path / "file.txt").write_text("secret")
    files.write("real/file.txt", b"inside")
    (files.root / "link").symlink_to(tmp_path)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for name in ("real", "link"):
                os.rename(files.root / name, files.root / "x")
                os.rename(files.root / "x", files.root / name)

    thread = threading.Thread(target=swap)
    thread.start()
    codes = set()
    try:
        for n in range(60):
            version = files.ask("file", "real/file.txt").json().get("etag", '"x"')
            codes.add(change(files, SAVE, "x/file.txt", etag=version).status_code)
            codes.add(change(files, UPLOAD, f"x/new{n}.txt").status_code)
            codes.add(change(files, CREATE, f"x/made{n}.txt").status_code)
            deleted = change(files, DELETE, "x/file.txt")
            codes.add(deleted.status_code)
            if deleted.status_code == 200:
                until(partial(restored, files, deleted.json()["id"]), lambda done: done)
    finally:
        stop.set()
        thread.join()
    assert 500 not in codes
    assert {path.name for path in tmp_path.iterdir() if path.name != "data"} == {"file.txt"}
    assert (tmp_path / "file.txt").read_text() == "secret"


def test_the_workspace_itself_stays(files: Workspace, tmp_path: Path) -> None:
    """It can be neither deleted nor moved, and one that was replaced by a link is not changed."""
    files.write("a.txt")
    for path in (".", "./", "././."):
        for what in (DELETE, MOVE):
            found = change(files, what, path)
            assert found.status_code in (409, 422), (what, path, found.text)
    assert files.root.is_dir()
    os.rename(files.root, files.root.with_name("elsewhere"))
    files.root.symlink_to(tmp_path)
    for what in CHANGES:
        found = change(files, what, "a.txt")
        assert (found.status_code, found.json()["type"]) == (409, "workspace-unavailable")


def test_changes_need_a_login_and_come_from_this_site(start: Start) -> None:
    """With a password nothing is changed without it; a page of another site changes nothing either."""
    server = start(password="correct horse battery", require_password=True)
    url = "/api/sessions/ses_x/workspace"
    calls: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("PUT", "/content?path=x", {"json": {"text": ""}}),
        ("POST", "/entries", {"json": {"path": "x", "kind": "file"}}),
        ("POST", "/move", {"json": {"path": "x", "to": "y"}}),
        ("POST", "/upload?path=x", {"content": b"x", "headers": OCTETS}),
        ("DELETE", "/entries?path=x", {}),
        ("GET", "/trash", {}),
        ("POST", "/restore", {"json": {"id": "x"}}),
    )
    for method, call, more in calls:
        found = server.http.request(method, url + call, **more)
        assert (found.status_code, found.json()["type"]) == (401, "unauthorized"), call
        foreign = {**more.get("headers", {}), "Origin": "https://evil.example"}
        if method != "GET":
            found = server.http.request(method, url + call, **{**more, "headers": foreign})
            assert (found.status_code, found.json()["type"]) == (403, "cross-site"), call


def test_changes_are_logged(fresh: Served) -> None:
    """Each change is a line of the security log with its path."""
    files = Workspace(fresh)
    files.write("a.txt")
    change(files, SAVE, "a.txt", etag=etag(files, "a.txt"))
    change(files, CREATE, "b.txt")
    change(files, MOVE, "b.txt", to="c.txt")
    change(files, UPLOAD, "d.txt")
    restore(files, change(files, DELETE, "d.txt").json()["id"])
    for event in ("file saved", "file created", "file moved", "file uploaded", "file deleted", "file restored"):
        assert event in fresh.complaints, event


# ---- slow disks ----


@pytest.mark.parametrize("what", ["save", "upload"])
def test_a_change_that_is_given_up_is_not_made_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """When the disk answers again, the file is as it was, and nothing is left open or behind."""
    files = SessionWorkspaces(tmp_path, None, is_cluster=False)
    editor = SessionWorkspaceEditor(files, lambda: 0.0, 0)
    session, root = Session(SessionId("ses_x"), LOCAL, 0.0, 0.0), tmp_path / "workspaces" / "ses_x"
    root.mkdir(parents=True)
    (root / "a.txt").write_text("one")
    hangs, answers = threading.Event(), threading.Event()
    slow = "_require_version" if what == "save" else "exists"
    real = getattr(changes, slow)

    def hang(*arguments: Any) -> Any:
        hangs.set()
        answers.wait(GUARD)
        return real(*arguments)

    async def chunks() -> AsyncIterator[bytes]:
        yield b"new"

    async def begin(etag: str) -> None:
        await (editor.save(session, "a.txt", "two", etag) if what == "save" else editor.upload(session, "b", chunks()))

    async def check() -> None:
        etag = (await files.file(session, "a.txt")).etag
        opened = len(os.listdir("/proc/self/fd"))
        monkeypatch.setattr(changes, slow, hang)
        with anyio.fail_after(GUARD):
            async with anyio.create_task_group() as group:
                group.start_soon(begin, etag)
                await anyio.to_thread.run_sync(hangs.wait, GUARD)
                group.cancel_scope.cancel()
            answers.set()
            while files.threads.borrowed_tokens:
                await anyio.lowlevel.checkpoint()
        assert len(os.listdir("/proc/self/fd")) == opened

    anyio.run(check)
    assert os.listdir(root) == ["a.txt"]
    assert (root / "a.txt").read_text() == "one"
