"""Subreaper: runs one command and leaves none of its processes behind. `python -I -S subreaper.py PROGRAM ARGS…`.

Standard input is a pipe from the caller, or, after `--control FD`, that descriptor is, and the command gets standard
input. When the pipe closes, because the caller gave up or died, everything the command
started is ended: SIGTERM, a grace period, SIGKILL. The grace period is short, or longer if a `t` was sent first. The
same happens to what is left when the command has exited. On Linux this process adopts orphans, so a process cannot
escape by leaving its process group, session or parent. On other systems only the process group is ended.

The exit status is the command's, or 128 plus the signal's number if a signal ended it. It starts with every command,
so it imports little, and only from the standard library.
"""

import os
import select
import signal
import sys
import time

SHORT_GRACE = 0.02
LONG_GRACE = 1.0
KILL_TIMEOUT = 2.0  # Seconds after SIGKILL: a process that hangs in the kernel is not waited for any longer
_LINUX = sys.platform.startswith("linux")


def main(command: list[str]) -> int:
    if _LINUX:
        import ctypes

        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: this process adopts orphans
    control = 0
    if command[0] == "--control":
        control, command = int(command[1]), command[2:]
        os.set_inheritable(control, False)
        os.closerange(3, control)  # event loops leave copies of the pipes open, and an end is not seen until all close
        os.closerange(control + 1, control + 256)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    child = _spawn(command, has_input=control != 0)
    null = os.open(os.devnull, os.O_RDWR)
    if control:
        os.dup2(null, 0)  # so writing to a command that has exited fails
    os.dup2(null, 1)  # the output ends when the command's processes end, not when this one does
    os.dup2(null, 2)
    status: int | None = None
    grace = SHORT_GRACE
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(woken, select.POLLIN)
    while status is None:
        ready = {fd for fd, _ in poll.poll()}
        status = _reap(child, status)
        if woken in ready:
            os.read(woken, 4096)
        if control in ready and status is None:
            if os.read(control, 1) == b"t":
                grace = LONG_GRACE
            break
    status = _end_all(child, status, grace, woken)
    code = -signal.SIGKILL if status is None else os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _spawn(command: list[str], *, has_input: bool) -> int:
    actions = [] if has_input else [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
    try:
        return os.posix_spawnp(command[0], command, os.environ, file_actions=actions, setsid=True)
    except NotImplementedError:
        return os.posix_spawnp(command[0], command, os.environ, file_actions=actions, setpgroup=0)


def _reap(child: int, status: int | None) -> int | None:
    """Reaps all exited children; returns the command's status once it is known."""
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
    give_up_at = kill_at + KILL_TIMEOUT
    terminated: set[int] = set()
    while True:
        status = _reap(child, status)
        left = _descendants() if _LINUX else ([child] if status is None else [])
        now = time.monotonic()
        if (not left and status is not None) or now > give_up_at:
            _signal([-child], signal.SIGKILL)  # for systems on which descendants are not visible
            return _reap(child, status)  # exited since the last check
        if now >= kill_at:
            _signal([-child, *left], signal.SIGKILL)
        else:
            _signal([pid for pid in left if pid not in terminated], signal.SIGTERM)
            terminated.update(left)
        if poll.poll(4):
            os.read(woken, 4096)


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            continue


def _descendants() -> list[int]:
    """All living descendants of this process, from the parents listed in /proc."""
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
    sys.exit(main(sys.argv[1:]))
