"""The lock files in this directory: the exact version of each package and the hashes of its files, for every platform
and every Python that Holdfast supports.

`python requirements/lock.py` writes them with uv, which must be on the PATH (`make lock`); versions change only where
pyproject.toml requires it, or with `--upgrade`. With `--check` it compares them with pyproject.toml, without a network.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent
_OLDEST_PYTHON: Final = "3.11"
_OLDEST_FOR_ALL: Final = "3.11.5"
"""What the packages of the documentation need. Debian 12 has an older one, with which Holdfast itself works."""
_HEAD: Final = "# Written by `make lock`; see docs/decisions/0033-a-lock-with-hashes.md\n"
_ENTRY: Final = re.compile(r"([a-z0-9._-]+)==(\S+)")
_HASH: Final = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")


@dataclass(frozen=True, slots=True)
class Group:
    """What one file locks. It is installed after those of `base`, and leaves out what they contain."""

    extras: tuple[str, ...] = ()
    base: tuple[str, ...] = ()
    others: tuple[str, ...] = ()  # Requirements that pyproject.toml does not name
    project: bool = True  # Whether it contains what Holdfast itself requires
    python: str = _OLDEST_PYTHON  # The oldest that it supports


def node_requirement() -> str:
    """What web/build.py installs."""
    (found,) = re.findall(r'^NODE_WHEEL: Final = "(.+)"$', (ROOT / "web" / "build.py").read_text(), re.MULTILINE)
    return str(found)


# hatchling imports editables for an editable project.
GROUPS: Final[Mapping[str, Group]] = {
    "runtime": Group(("cluster", "local", "otel", "providers")),
    "dev": Group(("dev",), ("runtime",), ("editables", "hatchling>=1.27", "packaging")),
    "docs": Group(("docs",), ("runtime", "dev"), python=_OLDEST_FOR_ALL),
    "bench": Group(("bench",), ("runtime", "dev")),
    "node": Group(others=(node_requirement(),), project=False),  # For machines without Node
    "dist": Group((), ("node",), ("build", "hatchling>=1.27", "twine"), project=False),
}


def lock_file(group: str) -> Path:
    return HERE / f"{group}.lock"


def read_entries(text: str) -> dict[str, str]:
    """The lines of each package, by its name."""
    entries: dict[str, str] = {}
    for block in re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE):
        found = _ENTRY.match(block)
        if found is not None:
            entries[found[1]] = entries.get(found[1], "") + block
    return entries


def requirements(group: Group) -> list[str]:
    """Those of the group and of its base, with the extras that name others resolved."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = [*group.others, *(project["dependencies"] if group.project else ())]
    for name in group.base:
        found += requirements(GROUPS[name])
    for extra in group.extras:
        found += [each for each in project["optional-dependencies"][extra] if not each.startswith("holdfast[")]
    return sorted(set(found))


def write(upgrade: Sequence[str]) -> None:
    known = "" if "--upgrade" in upgrade else "".join(_versions())
    with tempfile.TemporaryDirectory() as directory:
        every, versions = Path(directory) / "all.txt", Path(directory) / "versions.txt"
        versions.write_text(known)
        every.write_text(
            _compile(
                sorted({each for group in GROUPS.values() for each in requirements(group)}), versions, _OLDEST_FOR_ALL
            )
        )
        for name, group in GROUPS.items():
            entries = read_entries(_compile(requirements(group), every, group.python, "--generate-hashes"))
            for base in group.base:
                for package, contained in read_entries(lock_file(base).read_text()).items():
                    # An entry with a marker is for some platforms, of which the group may need more.
                    if ";" not in contained or contained == entries.get(package):
                        entries.pop(package, None)
            lock_file(name).write_text(_HEAD + "".join(entries.values()))


def _versions() -> Iterator[str]:
    """The locked versions, each as a constraint."""
    for name in GROUPS:
        if lock_file(name).exists():
            for entry in read_entries(lock_file(name).read_text()).values():
                yield from (f"{line.removesuffix(' ' + chr(92))}\n" for line in entry.splitlines() if line[0] != " ")


def _compile(wanted: Iterable[str], constraints: Path, python: str, *options: str) -> str:
    command = ["uv", "pip", "compile", "-q", "--universal", "--python-version", python, "--no-annotate"]
    command += ["--no-header", "--no-emit-index-url", "--no-emit-find-links", "-c", str(constraints), *options, "-"]
    made = subprocess.run(command, input="\n".join(wanted), stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    return made.stdout


def problems() -> Iterator[str]:
    for name, group in GROUPS.items():
        entries = {}
        for each in (*group.base, name):
            text = lock_file(each).read_text()
            entries.update(read_entries(text))
            if "://" in text or "--index" in text or "--find-links" in text:
                yield f"{each}.lock: contains an address"
        for package, entry in entries.items():
            hashes = [line for line in entry.splitlines() if line.startswith(" ")]
            if not hashes or not all(map(_HASH.fullmatch, hashes)):
                yield f"{name}.lock: {package} has no hashes"
        for text in requirements(group):
            wanted = Requirement(text)
            versions = [found[2] for found in _ENTRY.finditer(entries.get(_normalized(wanted.name), ""))]
            if not versions or not all(wanted.specifier.contains(each, prereleases=True) for each in versions):
                yield f"{name}.lock: {text} is required, locked is {', '.join(versions) or 'nothing'}. Run: make lock"


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main(arguments: Sequence[str]) -> int:
    if "--check" not in arguments:
        write(arguments)
        return 0
    found = sorted(set(problems()))
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
