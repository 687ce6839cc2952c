"""The sandbox of commands, those of the shell tool and those that agent programs start in terminals of Holdfast:
bubblewrap, where it is installed and works. A command can write only to its workspace and to an empty `/tmp`, reads the
system without the server's data and without the sockets that other programs have open when it starts, sees only its own
processes, and has no network unless the settings allow it. What is hidden besides: `[shell] hide` of the
configuration, which `app.agents` adds. Which variables it sees: `core.child_environment`. Agent programs themselves run
outside."""

import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from subprocess import DEVNULL
from typing import Final, Literal

import anyio

from holdfast.ports.tool import ToolError

SandboxMode = Literal["auto", "off", "required"]

# fmt: off
_CREDENTIALS: Final = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".netrc", ".pgpass", ".git-credentials",
    ".npmrc", ".pypirc", ".mozilla", ".cargo/credentials.toml", ".config/gcloud", ".config/gh", ".config/chromium",
    ".config/google-chrome", ".local/share/keyrings", ".1password", ".config/op", ".vault-token", ".claude",
    ".claude.json", ".codex", ".gemini", ".hermes", ".config/goose", ".config/opencode", ".local/share/goose",
    ".local/share/opencode",
)
# fmt: on
"""What is hidden of the home directory: keys, and what agent programs keep there. `.cache` is empty too, because many
programs want to write to it."""
_KEPT_OF_RUN: Final = ("/run/systemd/resolve", "/run/NetworkManager", "/run/current-system", "/run/opengl-driver")
"""Name servers, and the programs of NixOS."""
_READ_ONLY_OF_PROC: Final = ("acpi", "bus", "fs", "irq", "mtrr", "pressure", "scsi", "sys", "sysrq-trigger")
"""Settings of the kernel: they belong to root's number, which a command of a server run by root keeps."""
_EMPTY: Final = ("/tmp", "/var/tmp", "/run")
_SOCKETS: Final = Path("/proc/net/unix")  # The kernel's list of those that are open, with their paths
_MAX_SOCKETS: Final = 1000
_MAX_LISTED: Final = 20_000  # Most have no path
_TRY_TIMEOUT: Final = 10.0


@dataclass(frozen=True, slots=True)
class SandboxStatus:
    active: bool
    network: bool
    reason: str | None  # Why there is no sandbox

    def __str__(self) -> str:
        if not self.active:
            return f"none: {self.reason}"
        return f"bubblewrap, {'with' if self.network else 'without'} network access"


@dataclass(slots=True)
class ShellSandbox:
    hidden: Sequence[Path] = ()  # The data directory and `[shell] hide`; the workspace stays visible
    home: Path | None = None
    mode: SandboxMode = "auto"
    network: bool = False
    _program: str = ""
    _status: SandboxStatus | None = None

    async def status(self) -> SandboxStatus:
        """Whether commands are sandboxed, found out once by running a command in the sandbox."""
        if self._status is None:
            reason = "it is turned off in holdfast.toml" if self.mode == "off" else await self._try()
            self._status = SandboxStatus(reason is None, self.network or reason is not None, reason)
        return self._status

    async def wrap(
        self,
        command: Sequence[str],
        workspace: Path,
        environment: Mapping[str, str],
        *,
        cwd: Path | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> tuple[list[str], Mapping[str, str]]:
        """The command in the sandbox, or as it is where there is none, and the environment to start it with. `cwd`: a
        directory of the workspace. `variables`: set for the command, and not for bubblewrap, which a variable could
        make load a library. Raises ToolError if the settings require a sandbox."""
        status = await self.status()
        if status.active:
            return self._arguments(command, workspace, cwd or workspace, variables or {}), environment
        if self.mode == "required":
            raise ToolError(f"Commands need a sandbox, and there is {status}. Tell the user.")
        return list(command), {**environment, **(variables or {})}

    async def _try(self) -> str | None:
        """Why bubblewrap cannot be used, or None."""
        self._program = shutil.which("bwrap") or ""
        if not self._program:
            return "bubblewrap is not installed"
        place = Path("/tmp")
        try:
            with anyio.fail_after(_TRY_TIMEOUT):
                done = await anyio.run_process(self._arguments(["true"], place, place, {}), stdin=DEVNULL, check=False)
        except (OSError, TimeoutError) as error:
            return f"bubblewrap does not start ({error})"
        if done.returncode == 0:
            return None
        return f"bubblewrap does not work here ({done.stderr.decode(errors='replace').strip()[:200]})"

    def _arguments(self, command: Sequence[str], workspace: Path, cwd: Path, variables: Mapping[str, str]) -> list[str]:
        place = workspace.resolve()
        mounts = self._mounts()
        # Those inside of the workspace come after it, because it would cover them.
        inside = [path != place and path.is_relative_to(place) for path, _ in mounts]
        before = [words for (_, words), is_inside in zip(mounts, inside, strict=True) if not is_inside]
        after = [words for (_, words), is_inside in zip(mounts, inside, strict=True) if is_inside]
        return [
            *(
                self._program,
                "--die-with-parent",
                "--unshare-user-try",
                "--unshare-pid",
                "--unshare-ipc",
                "--unshare-uts",
            ),
            *("--unshare-cgroup-try", "--cap-drop", "ALL", *(() if self.network else ("--unshare-net",))),
            *("--ro-bind", "/", "/"),
            *(word for words in (*before, ("--bind", str(place), str(place)), *after) for word in words),
            *("--chdir", str(cwd.resolve()), "--setenv", "TMPDIR", "/tmp"),
            *(word for name, value in variables.items() for word in ("--setenv", name, value)),
            *("--", *command),
        ]

    def _mounts(self) -> list[tuple[Path, tuple[str, ...]]]:
        """What replaces or hides parts of the system: where, and the arguments for it. A later one covers earlier
        ones."""
        in_home = [] if self.home is None else [self.home / name for name in (*_CREDENTIALS, ".cache")]
        hidden = [path.resolve() for path in (*in_home, *self.hidden) if path.exists()]
        gone = [*map(Path, _EMPTY), Path("/dev"), Path("/proc"), *hidden]
        # Read-only, a socket could still be connected to.
        sockets = [path for path in _open_sockets() if not any(path.is_relative_to(place) for place in gone)]
        proc = [f"/proc/{name}" for name in _READ_ONLY_OF_PROC]
        return [
            (Path("/dev"), ("--dev", "/dev")),
            (Path("/proc"), ("--proc", "/proc")),
            *((Path(path), ("--ro-bind-try", path, path)) for path in proc),
            *((Path(path), ("--tmpfs", path)) for path in _EMPTY),
            *((Path(path), ("--ro-bind-try", path, path)) for path in _KEPT_OF_RUN),
            *((path, _hide(path)) for path in (*hidden, *sockets)),
        ]


@dataclass(frozen=True, slots=True)
class CommandRules:
    """What every command gets, whoever starts it."""

    environment: Mapping[str, str] = field(repr=False)  # The part of the server's that commands inherit
    sandbox: ShellSandbox


def _open_sockets() -> list[Path]:
    """Those with a path. Beyond the limit, and where the kernel does not list them, they stay reachable."""
    try:
        with _SOCKETS.open(encoding="utf-8", errors="surrogateescape") as lines:
            fields = [line.rstrip("\n").split(None, 7) for line in islice(lines, _MAX_LISTED)]
    except OSError:
        return []
    named = {words[7] for words in fields if len(words) == 8 and words[7].startswith("/")}
    return sorted({Path(os.path.realpath(name)) for name in named if _is_socket(name)})[:_MAX_SOCKETS]


def _is_socket(name: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(name).st_mode)
    except (OSError, ValueError):  # gone since, or in a directory that commands cannot enter either
        return False


def _hide(path: Path) -> tuple[str, ...]:
    return ("--tmpfs", str(path)) if path.is_dir() else ("--ro-bind", "/dev/null", str(path))
