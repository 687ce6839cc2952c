"""The program that runs the local model, llama.cpp as a Python package. It is large, so it is an extra. Where the model
itself comes from: `models.local_model_weights`."""

import importlib
import os
import sys
import sysconfig
from collections.abc import Callable
from importlib.util import find_spec

from holdfast import __version__
from holdfast.core.errors import HoldfastError
from holdfast.models.subprocess_runner import run_program

WHEEL_SIZE = 34_000_000  # Bytes, about
COMMAND = "pip install 'holdfast[local]'"
_TIMEOUT = 1800.0  # Seconds, for a slow connection
_IMPORT_TIMEOUT = 120.0


class RuntimeInstallError(HoldfastError):
    template = "The runtime of the local model could not be installed: {why}. Install it with `{command}`."
    why: str
    command: str = COMMAND


class RuntimeLoadError(HoldfastError):
    template = "The runtime of the local model cannot be loaded: {why}."
    why: str


def is_installed() -> bool:
    return find_spec("xllamacpp") is not None


def can_be_installed() -> bool:
    """Whether it is there already, or pip can add it to this environment."""
    return is_installed() or (find_spec("pip") is not None and os.access(sysconfig.get_path("purelib"), os.W_OK))


def install(check: Callable[[], None]) -> None:
    """Installs the extra with pip into the environment that Holdfast runs in. Blocks, for minutes on a slow connection.
    Raises RuntimeInstallError with the output of pip. `check` is called again and again meanwhile, and may raise an
    error to stop."""
    if is_installed():
        _check_import(check)
        return
    if find_spec("pip") is None:  # uvx and `uv tool` make environments without pip, which are not to be changed
        raise RuntimeInstallError("this environment has no pip", "uvx 'holdfast[local]'")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-input", "--disable-pip-version-check"]
    command += ["--only-binary=:all:", f"holdfast[local]=={__version__}"]
    try:
        done = run_program(command, check, timeout=_TIMEOUT)
    except TimeoutError:
        raise RuntimeInstallError(f"pip did not end within {_TIMEOUT / 60:g} minutes") from None
    if done.exit_code != 0:
        raise RuntimeInstallError(pip_failure(done.output))
    importlib.invalidate_caches()
    if not is_installed():
        raise RuntimeInstallError("there is no package of it for this system; use another model")
    _check_import(check)


def _check_import(check: Callable[[], None]) -> None:
    """In a process of its own: native code that does not fit this system may end the process."""
    try:
        done = run_program([sys.executable, "-c", "import xllamacpp"], check, timeout=_IMPORT_TIMEOUT)
    except TimeoutError:
        raise RuntimeLoadError(f"it did not start within {_IMPORT_TIMEOUT:g} seconds") from None
    if done.exit_code != 0:
        lines = done.output.strip().splitlines() or [f"exit code {done.exit_code}"]
        raise RuntimeLoadError(load_failure(lines[-1]))


def load_failure(reason: str) -> str:
    """What is wrong with an installed runtime, and what to do about it."""
    if "libgomp" in reason:  # minimal systems lack it, and Python packages may not bring it
        return "it needs the system library libgomp; on Debian and Ubuntu, `apt install libgomp1`"
    return reason.rstrip(".")


def pip_failure(output: str) -> str:
    """The reason in pip's output. Without a network its last error is that there is no such package."""
    if "after connection broken by" in output and "No matching distribution found" in output:
        return "pip could not reach the package index; check the network and the proxy settings"
    errors = [
        line.partition("error:")[2] for line in output.replace("ERROR:", "error:").splitlines() if "error:" in line
    ]
    reason = errors[-1].strip() if errors else output.strip()[-200:] or "no reason given"
    return f"pip failed: {reason.rstrip('.')}"
