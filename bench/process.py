"""What a server and everything it has started use: CPU seconds and memory, from the system's own books."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType

_SCHEDULED = 2  # of the clocks that the kernel has for every process, the one that counts nanoseconds on a CPU


def tree(pid: int) -> list[int]:
    """A process and all below it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found


def cpu_seconds(pid: int) -> float:
    """User and system time of the tree, all threads included. Finer than the hundredths in /proc/PID/stat, which is
    what a stream of 20 tokens a second needs."""
    used = 0.0
    for each in tree(pid):
        with contextlib.suppress(OSError):
            used += time.clock_gettime(~each << 3 | _SCHEDULED)
    return used


def memory_mb(processes: Iterable[int]) -> float:
    """Resident."""
    total = 0.0
    for each in processes:
        with contextlib.suppress(OSError, IndexError):
            status = Path(f"/proc/{each}/status").read_text()
            total += int(status.partition("VmRSS:")[2].split()[0]) / 1024
    return total


class Watched:
    """A server process. Its memory is looked at ten times a second, so that a peak belongs to what was measured then
    and not to the process's whole life."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.pid = process.pid
        self.peak_mb = 0.0
        self._stop = threading.Event()
        self._watching: list[int] = []
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def __enter__(self) -> "Watched":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        end(self.process)

    @contextlib.contextmanager
    def peak(self) -> Iterator[None]:
        self._watching = tree(self.pid)
        self.peak_mb = memory_mb(self._watching)
        try:
            yield
        finally:
            self._watching = []
            self.peak_mb = max(self.peak_mb, self.memory())

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            if self._watching:
                self.peak_mb = max(self.peak_mb, memory_mb(self._watching))

    def memory(self) -> float:
        return memory_mb(tree(self.pid))

    def cpu(self) -> float:
        return cpu_seconds(self.pid)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask it to, then make it."""
    below = tree(process.pid)[1:]
    process.terminate()
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for each in below:
        with contextlib.suppress(OSError):
            os.kill(each, signal.SIGKILL)  # what it started and left behind
