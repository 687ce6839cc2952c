"""CPU time and memory of a server and its child processes, as the kernel counts them."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType

_CPU_CLOCK = 2  # CPUCLOCK_SCHED of Linux: nanoseconds on a CPU


def process_tree(pid: int) -> list[int]:
    """A process and all its descendants."""
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
    """User and system time of the tree with all threads. `/proc/PID/stat` counts hundredths of a second, which is too
    coarse for one stream at 20 tokens per second."""
    used = 0.0
    for each in process_tree(pid):
        with contextlib.suppress(OSError):
            used += time.clock_gettime(~each << 3 | _CPU_CLOCK)
    return used


def memory_mb(processes: Iterable[int]) -> float:
    """Resident memory."""
    total = 0.0
    for each in processes:
        with contextlib.suppress(OSError, IndexError):
            status = Path(f"/proc/{each}/status").read_text()
            total += int(status.partition("VmRSS:")[2].split()[0]) / 1024
    return total


class MonitoredProcess:
    """A server process whose memory is sampled ten times a second, so that each measurement has a peak of its own."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.pid = process.pid
        self.peak_mb = 0.0
        self._stop = threading.Event()
        self._watching: list[int] = []
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def __enter__(self) -> "MonitoredProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        stop_process(self.process)

    @contextlib.contextmanager
    def peak(self) -> Iterator[None]:
        self._watching = process_tree(self.pid)
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
        return memory_mb(process_tree(self.pid))

    def cpu(self) -> float:
        return cpu_seconds(self.pid)


def stop_process(process: subprocess.Popen[bytes]) -> None:
    """Send SIGTERM, then SIGKILL after 15 seconds; kill the descendants that are left."""
    below = process_tree(process.pid)[1:]
    process.terminate()
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for each in below:
        with contextlib.suppress(OSError):
            os.kill(each, signal.SIGKILL)
