"""Runs one shell command and leaves nothing of it behind. A program of its own: `python -I -S nanny.py COMMAND`.

Standard input is the line to whoever started it. When that closes, because the caller gave up or died, everything the
command started is ended: SIGTERM, a grace, SIGKILL. The grace is short, or longer if a `t` was sent first. The same
happens to what is left over when the command itself has ended. On Linux processes whose parents are gone become this
one's children, so that leaving the process group, the session or one's parent is no way out. Elsewhere the process
group is all that is ended.

Its exit status is the command's; 128 and the signal's number if a signal ended it. Only what comes with Python is
imported, and as little as possible: it starts with every command.
"""

import os
import select
import signal
import sys
import time

SHORT = 0.02
LONG = 1.0
PATIENCE = 2.0
"""After SIGKILL: a process that the system itself holds up is not waited for longer."""
_LINUX = sys.platform.startswith("linux")


def main(command: str) -> int:
    _adopt_orphans()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    child = _spawn(command)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)  # the command's output ends when the command's processes have ended, not when this one has
    os.dup2(null, 2)
    status: int | None = None
    grace = SHORT
    poll = select.poll()
    poll.register(0, select.POLLIN)
    poll.register(woken, select.POLLIN)
    while status is None:
        ready = {fd for fd, _ in poll.poll()}
        status = _reap(child, status)
        if woken in ready:
            os.read(woken, 4096)
        if 0 in ready and status is None:
            if os.read(0, 1) == b"t":
                grace = LONG
            break
    status = _end_all(child, status, grace, woken)
    code = -signal.SIGKILL if status is None else os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _adopt_orphans() -> None:
    if _LINUX:
        import ctypes

        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def _spawn(command: str) -> int:
    no_input = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
    argv = ["sh", "-c", command]
    try:
        return os.posix_spawn("/bin/sh", argv, os.environ, file_actions=no_input, setsid=True)
    except NotImplementedError:
        return os.posix_spawn("/bin/sh", argv, os.environ, file_actions=no_input, setpgroup=0)


def _reap(child: int, status: int | None) -> int | None:
    """Bury whoever has died; the command's own status is kept."""
    while True:
        try:
            pid, found = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == 0:
            return status
        if pid == child:
            status = found


def _end_all(child: int, status: int | None, grace: float, woken: int) -> int | None:
    poll = select.poll()
    poll.register(woken, select.POLLIN)
    kill_at = time.monotonic() + grace
    give_up_at = kill_at + PATIENCE
    asked: set[int] = set()
    while True:
        status = _reap(child, status)
        left = _descendants() if _LINUX else ([child] if status is None else [])
        now = time.monotonic()
        if (not left and status is not None) or now > give_up_at:
            _signal([-child], signal.SIGKILL)  # where descendants cannot be seen
            return _reap(child, status)  # who died since the last look
        if now >= kill_at:
            _signal([-child, *left], signal.SIGKILL)
        else:
            _signal([pid for pid in left if pid not in asked], signal.SIGTERM)
            asked.update(left)
        if poll.poll(4):
            os.read(woken, 4096)


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            continue


def _descendants() -> list[int]:
    """Everybody below this process who is not dead yet, by what /proc says of parents."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
            except OSError:
                continue
            if state not in (b"Z", b"X"):
                parents[int(name)] = int(parent)
    me, found = os.getpid(), []
    for pid in parents:
        above = parents[pid]
        while above not in (0, me) and above in parents:
            above = parents[above]
        if above == me:
            found.append(pid)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
