"""Runs a search for a regular expression in a process with limits on its memory and time: `regex` unrolls repetition
counts when it compiles a pattern, so a few characters can need any amount of either, and nothing can interrupt it."""

import json
import math
import resource
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from typing import Final

from holdfast.core.parts import Json
from holdfast.ports.tool import ToolError, ToolResult
from holdfast.tools.workspace.search_tool import FileSearch

MAX_MEMORY: Final = 256 * 1024 * 1024  # Address space; Linux enforces it, macOS does not
MAX_COMPILE_TIME: Final = 3  # Seconds of CPU time after the start
MAX_CPU_TIME: Final = 30
DEADLINE: Final = 60.0
_CHECK: Final = 0.05  # Seconds between two looks whether the search was cancelled
_OUT_OF_MEMORY: Final = 3
_TOO_EXPENSIVE: Final = (
    "The pattern takes too much time or memory. Use a simpler pattern, with smaller repetition counts."
)


def search_files(root: Path, args: Mapping[str, Json], stop: threading.Event) -> ToolResult:
    """Blocking. A plain text is searched for right here."""
    if not args.get("regex", False):
        return FileSearch(root, args, stop).run()
    # -P: a module in the current directory must not be imported instead of ours
    command = [sys.executable, "-P", "-m", "holdfast.tools.workspace.search_process"]
    with Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL) as process:
        try:
            output = _communicate(process, json.dumps({"root": str(root), "args": args}).encode(), stop)
        finally:
            process.kill()
    if process.returncode < 0 or process.returncode == _OUT_OF_MEMORY:
        raise ToolError(_TOO_EXPENSIVE)
    if process.returncode != 0:
        raise ToolError("The search failed. Try a simpler pattern, or search for a plain text.")
    found = json.loads(output)
    if found["error"] is not None:
        raise ToolError(found["error"])
    return ToolResult(found["content"])


def _communicate(process: Popen[bytes], task: bytes, stop: threading.Event) -> bytes:
    give_up_at = time.monotonic() + DEADLINE
    unsent: bytes | None = task
    while True:
        try:
            return process.communicate(unsent, timeout=_CHECK)[0]
        except TimeoutExpired:
            unsent = None  # the next call goes on with it
            if stop.is_set() or time.monotonic() > give_up_at:
                raise ToolError("The search took too long or was cancelled.") from None


def _run(task: Mapping[str, Json]) -> Mapping[str, Json]:
    search = FileSearch(Path(task["root"]), task["args"], threading.Event())
    try:
        pattern = search.compile()
        _limit(resource.RLIMIT_CPU, MAX_CPU_TIME)
        return {"content": search.search(pattern).content, "error": None}
    except ToolError as error:
        return {"content": "", "error": str(error)}


def _limit(kind: int, soft: int, hard: int | None = None) -> None:
    """Sets a limit of this process, as far as the system and the limits it was started with let it."""
    _, most = resource.getrlimit(kind)
    hard = most if hard is None else hard if most == resource.RLIM_INFINITY else min(hard, most)
    soft = soft if hard == resource.RLIM_INFINITY else min(soft, hard)
    try:
        resource.setrlimit(kind, (soft, hard))
    except (OSError, ValueError):
        return


def main() -> int:
    _limit(resource.RLIMIT_AS, MAX_MEMORY, MAX_MEMORY)
    _limit(resource.RLIMIT_CORE, 0, 0)
    _limit(resource.RLIMIT_CPU, math.ceil(time.process_time()) + MAX_COMPILE_TIME, MAX_CPU_TIME)
    try:
        done = json.dumps(_run(json.load(sys.stdin.buffer)))
    except MemoryError:
        return _OUT_OF_MEMORY
    sys.stdout.write(done)
    return 0


if __name__ == "__main__":
    sys.exit(main())
