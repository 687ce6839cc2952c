"""Programs that npx has downloaded before, in the cache of npm. They are started from there and not through npx, which
would ask the registry for a newer version each time, and download it in the middle of a turn."""

import os
import shutil
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

_MAX_DIRECTORIES: Final = 500  # Of the cache: npx makes one for each set of packages that it was asked for


def find_cached_program(package: str, program: str, environment: Mapping[str, str]) -> str | None:
    """The path of a program of the package, of the newest download that is complete. None without npx, which comes with
    the Node that the program needs. Blocks."""
    if shutil.which("npx", path=environment.get("PATH")) is None:
        return None
    found = [place for place in _downloads(environment) if _is_complete(place, package, program)]
    return str(max(found, key=_changed_at) / "node_modules" / ".bin" / program) if found else None


def _downloads(environment: Mapping[str, str]) -> Iterator[Path]:
    named = {name.lower(): value for name, value in environment.items()}
    home = environment.get("HOME")
    cache = named.get("npm_config_cache") or (os.path.join(home, ".npm") if home else None)
    if not cache:
        return
    try:
        with os.scandir(os.path.join(cache, "_npx")) as entries:
            yield from [Path(entry.path) for entry in islice(entries, _MAX_DIRECTORIES)]
    except OSError:  # npx has never downloaded anything
        return


def _is_complete(place: Path, package: str, program: str) -> bool:
    """npm writes its list of what it installed at the end."""
    modules = place / "node_modules"
    needed = (modules / package / "package.json", modules / ".package-lock.json")
    return all(path.is_file() for path in needed) and os.access(modules / ".bin" / program, os.X_OK)


def _changed_at(place: Path) -> float:
    try:
        return (place / "node_modules" / ".package-lock.json").stat().st_mtime
    except OSError:  # removed since
        return 0.0
