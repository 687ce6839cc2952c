"""A bare Debian root and commands in it. Mounts are in a namespace of each command and end with it; the network is this
machine's."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

PACKAGES: Final = ("ca-certificates", "libgomp1", "passwd", "python3", "python3-venv")
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class DebianRoot:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._pip = _pip_settings()
        self._mounts: list[Path] = []  # Directories of this machine that pip's settings name

    def create(self, archive: Path, suite: str) -> None:
        """Makes the root from `archive`, which mmdebstrap makes first if it is missing, with this machine's sources."""
        if not archive.exists():
            part = archive.with_suffix(".part.tar")
            command = [
                "mmdebstrap",
                "--quiet",
                "--variant=minbase",
                f"--include={','.join(PACKAGES)}",
                suite,
                str(part),
            ]
            listed = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*.sources"))]
            listed += sorted(Path("/etc/apt/sources.list.d").glob("*.list"))
            command += (
                [str(path) for path in listed if path.is_file() and path.stat().st_size]
                if suite == host_suite()
                else []
            )
            subprocess.run(command, check=True, timeout=1800)
            part.rename(archive)
        self.path.mkdir()
        subprocess.run(["tar", "-xf", archive, "-C", self.path, "--exclude=./dev/*"], check=True)
        for name in ("/etc/resolv.conf", "/etc/hosts"):
            shutil.copyfile(name, self.path / name.lstrip("/"))
        dumped = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout.splitlines()
        settings = "\n".join(line for line in dumped if line.startswith("Acquire::"))
        (self.path / "etc/apt/apt.conf.d/99-machine").write_text(f"{settings}\n")
        for value in self._pip.values():
            for word in re.split(r"\s+", value):
                self._provide(Path(word.removeprefix("file://")))

    def _provide(self, path: Path) -> None:
        """Certificates and directories that pip's settings name exist in the root too, while a command runs."""
        if not path.is_absolute() or not path.exists():
            return
        path = path.parent if path.name == "simple" else path  # an index refers to files beside it
        inside = self.path / str(path).lstrip("/")
        if path.is_file():
            inside.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, inside)
        else:
            inside.mkdir(parents=True, exist_ok=True)
            self._mounts.append(path)

    def command(
        self,
        arguments: Sequence[str],
        *,
        user: str = "0:0",
        env: Mapping[str, str] | None = None,
        writable: Sequence[str] | None = None,
    ) -> list[str]:
        """The command line on this machine, which becomes the process itself: its id is that of the command.
        `writable`: the only directories that are, apart from a temporary one; None: everything is."""
        root = shlex.quote(str(self.path))
        steps = ["set -e"]
        if writable is not None:
            steps += [f"mount --bind {root} {root}", f"mount -o remount,bind,ro {root}"]
            steps += [f"mount -t tmpfs -o mode=1777 tmpfs {root}/tmp"]
            steps += [f"mount --bind {root}{shlex.quote(name)} {root}{shlex.quote(name)}" for name in writable]
            steps += [f"mount -o remount,bind,rw {root}{shlex.quote(name)}" for name in writable]
        steps += [f"mount -t proc proc {root}/proc", f"mount --rbind /dev {root}/dev"]
        steps += [f"mount --bind {shlex.quote(str(path))} {root}{shlex.quote(str(path))}" for path in self._mounts]
        values = {"PATH": PATH, "LANG": "C.UTF-8", **self._pip, **(env or {})}
        inner = ["env", "-i", *(f"{name}={value}" for name, value in values.items()), *arguments]
        steps += [f"exec chroot --userspec={user} --groups= {root} {shlex.join(inner)}"]
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", "\n".join(steps)]

    def run(
        self,
        *arguments: str,
        user: str = "0:0",
        env: Mapping[str, str] | None = None,
        writable: Sequence[str] | None = None,
        check: bool = True,
        stdin: str = "",
    ) -> "subprocess.CompletedProcess[str]":
        command = self.command(arguments, user=user, env=env, writable=writable)
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=1200, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"{shlex.join(arguments)} failed:\n{(done.stdout + done.stderr)[-4000:]}")
        return done

    def has(self, program: str) -> bool:
        return self.run("sh", "-c", f"command -v {program}", check=False).returncode == 0

    def size(self, directory: str) -> int:
        """Bytes on disk."""
        done = subprocess.run(
            ["du", "-s", "--block-size=1", str(self.path / directory.lstrip("/"))],
            capture_output=True,
            text=True,
            check=True,
        )
        return int(done.stdout.split()[0])


def host_suite() -> str:
    text = Path("/etc/os-release").read_text()
    found = re.search(r"^VERSION_CODENAME=(\S+)$", text, re.MULTILINE)
    return found[1] if found else ""


def _pip_settings() -> dict[str, str]:
    """This machine's index, certificates and proxies as pip's variables: the root has no file of them."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    settings: dict[str, str] = {}
    for line in listed.stdout.splitlines():
        name, _, value = line.partition("=")
        section, _, option = name.partition(".")
        if section in ("global", "install", "download"):
            settings[f"PIP_{option.upper().replace('-', '_')}"] = value.strip("'\"").replace("\\n", " ").strip()
    settings |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    proxies = ("http_proxy", "https_proxy", "no_proxy")
    return settings | {name: os.environ[name] for name in (*proxies, *map(str.upper, proxies)) if name in os.environ}
