"""The file tools: what they do, and that nothing leads out of the workspace."""

import os
import resource
import socket
import stat
import threading
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.ports.tool import ToolError
from holdfast.tools.workspace import search_process, search_tool
from holdfast.tools.workspace.file_tools import MAX_CHARS, file_tools
from tests.harness import GUARD
from tests.tools.conftest import Bench

pytestmark = pytest.mark.anyio

TOOLS = {tool.spec.name: tool for tool in file_tools()}
LIST, READ, SEARCH = TOOLS["list_files"], TOOLS["read_file"], TOOLS["search_files"]
WRITE, EDIT = TOOLS["write_file"], TOOLS["edit_file"]
SECRET = "the secret outside"


@pytest.fixture
def inside(bench: Bench) -> Path:
    bench.workspace.mkdir(parents=True)
    return bench.workspace


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text(SECRET)
    return tmp_path / "outside"


# ---- what they do ----


async def test_a_file_is_written_read_and_listed(bench: Bench) -> None:
    """X5: the workspace and missing directories are made when they are needed, private to the owner."""
    assert (await bench.run(WRITE, path="notes/a.txt", content="one\ntwo\n")).content.startswith("Created notes/a.txt")
    assert (await bench.run(READ, path="notes/a.txt")).content == "one\ntwo\n"
    assert (await bench.run(LIST)).content == "notes/"
    assert (await bench.run(LIST, path="notes")).content == "a.txt (8 bytes)"
    assert stat.S_IMODE(bench.workspace.stat().st_mode) == 0o700


async def test_a_replaced_file_keeps_its_mode(bench: Bench, inside: Path) -> None:
    """X5: a script stays executable, and no temporary file is left behind."""
    (inside / "run.sh").write_text("old")
    (inside / "run.sh").chmod(0o750)
    (inside / ".holdfast-write.tmp").write_text("left by a crash")
    result = await bench.run(WRITE, path="run.sh", content="new")
    assert result.content.startswith("Replaced")
    assert stat.S_IMODE((inside / "run.sh").stat().st_mode) == 0o750
    assert os.listdir(inside) == ["run.sh"]


async def test_a_reader_sees_the_old_file_or_the_new_one(bench: Bench, inside: Path) -> None:
    """P1: a file is replaced in one step: an open handle keeps the whole old text."""
    (inside / "a").write_text("old text")
    with (inside / "a").open() as before:
        await bench.run(WRITE, path="a", content="new")
        assert before.read() == "old text"
    assert (inside / "a").read_text() == "new"


async def test_lines_can_be_read_in_ranges(bench: Bench, inside: Path) -> None:
    """X5: a range is exact, and where there is more the way to it is told."""
    (inside / "a").write_text("".join(f"line {n}\n" for n in range(1, 11)))
    result = await bench.run(READ, path="a", first_line=3, lines=2)
    assert result.content == "line 3\nline 4\n[… lines 3 to 4 shown; continue with first_line=5]"
    assert (await bench.run(READ, path="a", first_line=9)).content == "line 9\nline 10\n"
    assert "has only 10 lines" in (await bench.run(READ, path="a", first_line=50)).content


async def test_a_large_file_is_cut(bench: Bench, inside: Path) -> None:
    """X5: neither many lines nor one long line is more than a model can take."""
    (inside / "many").write_text("x\n" * 100_000)
    (inside / "long").write_text("y" * 200_000)
    many, long = (await bench.run(READ, path="many")).content, (await bench.run(READ, path="long")).content
    assert many.endswith("continue with first_line=2001]")
    assert long.startswith("y" * MAX_CHARS + "\n[… line 1 continues")


async def test_a_binary_file_is_told_as_such(bench: Bench, inside: Path) -> None:
    """X5: bytes that are no text are not shown as text; the look at a file's beginning may end within a character."""
    for data in (b"\x89PNG\0\0", b"\xff\xfe\xfa\xfb" * 100):
        (inside / "a.bin").write_bytes(data)
        assert f"binary file ({len(data)} bytes)" in (await bench.run(READ, path="a.bin")).content
    (inside / "a").write_text("x" + "é" * 10_000)
    assert (await bench.run(READ, path="a")).content == "x" + "é" * 10_000


async def test_an_edit_is_exact_and_shows_its_diff(bench: Bench, inside: Path) -> None:
    """X5: one place is replaced, or with `all` every one; line ends stay, and the diff says what changed."""
    (inside / "a.py").write_bytes(b"one\r\ntwo\r\nthree")
    result = await bench.run(EDIT, path="a.py", old="two", new="2")
    assert (inside / "a.py").read_bytes() == b"one\r\n2\r\nthree"
    assert all(words in result.content for words in ("--- a/a.py", "-two", "+2"))
    assert not (await bench.run(EDIT, path="a.py", old="e", new="E", all=True)).is_error
    assert (inside / "a.py").read_bytes() == b"onE\r\n2\r\nthrEE"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"old": "x", "new": "y"}, "occurs 3 times"),
        ({"old": "z", "new": "y"}, "does not occur"),
        ({"old": "", "new": "y"}, "is empty"),
        ({"old": "x", "new": "x"}, "nothing to change"),
    ],
)
async def test_an_edit_that_is_not_clear_changes_nothing(
    bench: Bench, inside: Path, args: dict[str, str], says: str
) -> None:
    """E1: the model is told why, and the file is as it was."""
    (inside / "a").write_text("x x x")
    result = await bench.run(EDIT, path="a", **args)
    assert result.is_error
    assert says in result.content
    assert (inside / "a").read_text() == "x x x"


async def test_files_are_searched_by_text_and_pattern(bench: Bench, inside: Path) -> None:
    """X5: plain text is taken literally, a pattern as one, within the files that were named."""
    (inside / "src").mkdir()
    (inside / "src" / "a.py").write_text("def f():\n    return a.b\n")
    (inside / "b.txt").write_text("axb\nA.B\n")
    (inside / "c.bin").write_bytes(b"a.b\0")
    (inside / ".git").mkdir()
    (inside / ".git" / "x").write_text("a.b")
    assert (await bench.run(SEARCH, pattern="a.b")).content == "src/a.py:2:     return a.b"
    found = (await bench.run(SEARCH, pattern="a.b", regex=True, ignore_case=True)).content
    assert found == "b.txt:1: axb\nb.txt:2: A.B\nsrc/a.py:2:     return a.b"
    assert (await bench.run(SEARCH, pattern="a.b", regex=True, files="*.txt")).content == "b.txt:1: axb"
    assert (await bench.run(SEARCH, pattern="nothing")).content == "No matches in 3 files."


async def test_a_search_is_bounded(bench: Bench, inside: Path) -> None:
    """X5: many matches are cut, and a pattern that would take others forever is answered."""
    (inside / "a").write_text("match\n" * 1000)
    content = (await bench.run(SEARCH, pattern="match")).content
    assert content.count("match") == search_tool.MAX_MATCHES + 1
    assert "narrow the search" in content
    assert "missing )" in (await bench.run(SEARCH, pattern="(", regex=True)).content


async def test_a_pattern_that_takes_for_ever_is_given_up(inside: Path) -> None:
    """L6: matching has a time limit, and other threads run meanwhile."""
    (inside / "evil").write_text("a" * 60 + "b")
    search = search_tool.FileSearch(inside, {"pattern": "(a|aa)+$", "regex": True}, threading.Event(), left=0.3)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await checkpoint()
            ticks += 1

    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as tg:
            tg.start_soon(tick)
            with pytest.raises(ToolError, match="too long"):
                await anyio.to_thread.run_sync(search.run)
            tg.cancel_scope.cancel()
    assert ticks > 100


EXPLOSIVE = {
    "counts": "(?:(?:(?:a{1000}){1000}){1000}){1000}",
    "minimum counts": "(?:(?:(?:a{1000,}){1000,}){1000,}){1000,}",
    "lazy counts": "(?:(?:(?:a{1000,2000}?){1000,2000}?){1000,2000}?)+",
    "lookbehind": "(?<=(?:(?:(?:a|b){1000}){1000}){1000})",
    "named sets": "(?V1)(?:(?:[[a-z]--[aeiou]]{1000}){1000}){1000}",
    "fuzzy": "(?e)(?:(?:(?:abc){1000}){1000}){e<=500}",
    "recursion": "(?R)?a(?R)?b",
    "alternatives": "(?:" + "|".join("(?:a{999}){99}" for _ in range(60)) + "){999}",
}


@pytest.mark.parametrize("pattern", EXPLOSIVE.values(), ids=EXPLOSIVE)
async def test_an_explosive_pattern_needs_little_of_the_server(bench: Bench, inside: Path, pattern: str) -> None:
    """A pattern that would need gigabytes or hours gets an answer, and others run meanwhile."""
    (inside / "a").write_text("ab" * 1000 + "a" * 1000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await checkpoint()
            ticks += 1

    with anyio.fail_after(search_process.DEADLINE + GUARD):  # a busy machine may need all of its time
        async with anyio.create_task_group() as tg:
            tg.start_soon(tick)
            result = await bench.run(SEARCH, pattern=pattern, regex=True)
            tg.cancel_scope.cancel()
    assert ticks > 100
    assert "Use a simpler pattern" in result.content or "a:1:" in result.content or "invalid" in result.content
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes


_EXAMPLES = 8 if settings().max_examples <= 100 else 200  # Each is a process; many in the long version
_ATOMS = st.sampled_from(
    ["a", "b", ".", r"\w", r"\p{L}", "[a-z]", "[^a]", "(?V1)[[a-z]--[aeiou]]", "(?i:\u00df)", "(?R)", r"\X", "^", "$"]
)
_COUNTS = st.sampled_from(
    ["*", "+", "?", "{9}", "{1000}", "{,1000}", "{1000,}", "{99,999}?", "{65535}", "{e<=5}", "{i<=3,d<=3}", "++", "*+"]
)


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("(?:{}){}".format, inner, _COUNTS),
        st.builds("({}){}".format, inner, _COUNTS),
        st.builds("({}{}{})".format, st.sampled_from(["?=", "?!", "?<=", "?<!", "?>", "?|"]), inner, inner),
        st.builds("(?:{}|{})".format, inner, inner),
        st.builds("{}{}".format, inner, inner),
    )


@settings(max_examples=_EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=st.recursive(_ATOMS, _larger, max_leaves=25), ignore_case=st.booleans())
async def test_every_pattern_is_bounded(inside: Path, pattern: str, ignore_case: bool) -> None:
    """Whatever a model writes, the search ends with a result or a reason, within its limits of time and memory."""
    (inside / "a").write_text("abba" * 50)
    args = {"pattern": pattern[: search_tool.MAX_PATTERN], "regex": True, "ignore_case": ignore_case}
    began = time.monotonic()
    try:
        found = search_process.search_files(inside, args, threading.Event()).content
    except ToolError as error:
        found = str(error)
    assert found
    assert time.monotonic() - began < search_process.DEADLINE


async def test_a_cancelled_search_ends_its_process(inside: Path) -> None:
    """Nobody waits for the limits of a search whose run has ended."""
    stop = threading.Event()
    stop.set()
    args = {"pattern": EXPLOSIVE["counts"], "regex": True}
    began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    with pytest.raises(ToolError, match="cancelled"):
        search_process.search_files(inside, args, stop)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began < search_process.MAX_COMPILE_TIME / 2


async def test_a_search_that_nobody_waits_for_stops(inside: Path) -> None:
    """C7: the worker thread of a cancelled search looks at no further line."""
    (inside / "a").write_text("match\n" * 1000)
    stop = threading.Event()
    stop.set()
    assert search_tool.FileSearch(inside, {"pattern": "match"}, stop).run().content == "No matches in 0 files."


# ---- attacks ----

CALLS: list[tuple[Any, dict[str, Any]]] = [
    (READ, {}),
    (WRITE, {"content": "pwned"}),
    (EDIT, {"old": "secret", "new": "pwned"}),
    (LIST, {}),
    (SEARCH, {"pattern": "secret"}),
]
NAMES = [tool.spec.name for tool, _ in CALLS]


@pytest.mark.parametrize(("tool", "args"), CALLS, ids=NAMES)
@pytest.mark.parametrize(
    "path",
    [
        "../../outside/secret.txt",
        "/etc/passwd",
        "a/../../../outside",
        "~/x",
        "x\0y",
        "link.txt",
        "up/secret.txt",
        "up",
        "loop",
    ],
)
async def test_no_path_leads_out(
    bench: Bench, inside: Path, outside: Path, tool: Any, args: dict[str, Any], path: str
) -> None:
    """X5: dots, absolute paths, linked files, linked directories and loops are refused by every tool."""
    (inside / "link.txt").symlink_to(outside / "secret.txt")
    (inside / "up").symlink_to(outside)
    (inside / "loop").symlink_to("loop")
    result = await bench.run(tool, path=path, **args)
    assert result.is_error
    assert SECRET not in result.content
    assert (outside / "secret.txt").read_text() == SECRET
    assert os.listdir(outside) == ["secret.txt"]


async def test_links_are_listed_and_not_followed(bench: Bench, inside: Path, outside: Path) -> None:
    """X5: a listing names links, a search passes them by."""
    (inside / "link.txt").symlink_to(outside / "secret.txt")
    (inside / "up").symlink_to(outside)
    assert (await bench.run(LIST)).content == "link.txt (link, not followed)\nup (link, not followed)"
    assert (await bench.run(SEARCH, pattern="secret")).content.startswith("No match")


@pytest.mark.parametrize(("tool", "args"), CALLS[:3], ids=NAMES[:3])
async def test_a_link_swapped_in_on_the_way_is_not_followed(
    bench: Bench, inside: Path, outside: Path, monkeypatch: pytest.MonkeyPatch, tool: Any, args: dict[str, Any]
) -> None:
    """X5: the directory is replaced by a link outside right after the workspace was opened, before it is entered."""
    (inside / "d").mkdir()
    (inside / "d" / "secret.txt").write_text("secret inside")
    really_open = os.open
    swapped = threading.Event()

    def swapping_open(path: Any, flags: int, *more: Any, **options: Any) -> int:
        fd = really_open(path, flags, *more, **options)
        if not swapped.is_set() and Path(str(path)) == inside:
            swapped.set()
            (inside / "d").rename(inside / "old")
            (inside / "d").symlink_to(outside)
        return fd

    monkeypatch.setattr(os, "open", swapping_open)
    result = await bench.run(tool, path="d/secret.txt", **args)
    assert swapped.is_set()
    assert result.is_error
    assert (outside / "secret.txt").read_text() == SECRET
    assert os.listdir(outside) == ["secret.txt"]


async def test_a_file_that_keeps_turning_into_a_link_gives_nothing_away(
    bench: Bench, inside: Path, outside: Path
) -> None:
    """X5: swapped back and forth by a second thread, a read gives the inner text or a refusal, never the outer one."""
    (inside / "plain").write_text("inner")
    (inside / "other").symlink_to(outside / "secret.txt")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            os.rename(inside / "plain", inside / "x")
            os.rename(inside / "other", inside / "plain")
            os.rename(inside / "plain", inside / "other")
            os.rename(inside / "x", inside / "plain")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        results = [await bench.run(READ, path="plain") for _ in range(300)]
    finally:
        done.set()
        thread.join()
    assert all(result.is_error or result.content == "inner" for result in results)


@pytest.mark.parametrize(("tool", "args"), CALLS[:3], ids=NAMES[:3])
@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "directory"])
async def test_only_plain_files_are_opened(
    bench: Bench, inside: Path, tool: Any, args: dict[str, Any], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X5: a pipe does not block, a device gives nothing, and neither is replaced by a file."""
    path = inside / "odd"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        monkeypatch.chdir(inside)  # the name of a socket is short
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("odd")
    elif kind == "directory":
        path.mkdir()
    else:
        try:
            os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))
        except PermissionError:
            pytest.skip("only root makes devices")
    before = path.stat().st_mode
    result = await bench.run(tool, path="odd", **args)
    assert result.is_error
    assert path.stat().st_mode == before
