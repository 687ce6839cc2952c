"""`python -m tests.mutants`: apply each patch to a copy of the code, and demand that a test notices."""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.mutants.report_plugin import REPORT, Report

ROOT: Final = Path(__file__).parents[2]
COPIED: Final = ("src", "tests", "pyproject.toml")

IDS: Final = frozenset(
    f"{section}{n}" for section, last in zip("CXJL", (8, 5, 7, 7), strict=True) for n in range(1, last + 1)
)
GUARDS: Final = frozenset(
    {
        "no-epoch-check",
        "publish-before-commit",
        "no-terminal-check",
        "unshielded-final-save",
        "lost-wake-up",
        "settle-twice",
    }
)
JOBS: Final = 2
TEST_GUARD: Final = 60
"""Seconds after which a test has failed; a mutant that makes it hang is noticed by that."""
RUN_GUARD: Final = 180
"""Seconds after which pytest itself is taken to hang, which nobody noticed."""
TESTS_FAILED: Final = 1
"""pytest's exit code when all is well but the tests."""


class MissedError(Exception):
    """Why a mutant is not caught."""


@dataclass(frozen=True, slots=True)
class Mutant:
    path: Path
    id: str
    name: str
    breaks: str
    tests: str


def read(path: Path) -> Mutant:
    head = path.read_text().partition("\n--- ")[0]
    fields = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    id, _, name = path.stem.partition("-")
    if fields.keys() != {"id", "breaks", "tests"} or fields["id"] != id:
        raise SystemExit(f"{path.name}: it must begin with `id: {id}`, `breaks: …` and `tests: …`")
    return Mutant(path, id, name, fields["breaks"], fields["tests"])


def absent(mutants: Sequence[Mutant]) -> Iterator[str]:
    """Behaviors and guards that nobody breaks."""
    yield from sorted(IDS - {mutant.id for mutant in mutants if mutant.name not in GUARDS})
    yield from sorted(GUARDS - {mutant.name for mutant in mutants})


class Bench:
    """Copies of one state of the code and the patches, and pytest on them: editing the tree disturbs nothing."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._plain = place / "plain"
        self._counting = threading.Lock()
        self._copies = 0
        self._sound: dict[str, threading.Lock] = {}
        self._checked: set[str] = set()
        copy(ROOT, self._plain)
        self.mutants = [read(path) for path in sorted((self._plain / "tests" / "mutants").glob("*.patch"))]

    def catch(self, mutant: Mutant) -> str:
        """The test that noticed."""
        self._check_selection(mutant)
        code = self._fresh_copy()
        apply(mutant.path, code)
        exit_code, report, output = run(code, mutant.tests)
        shutil.rmtree(code)
        caught = [test for test in report["failed"] if names(report["selected"][test], mutant.id)]
        if exit_code != TESTS_FAILED or not caught:
            raise MissedError(f"no test that names {mutant.id} failed (pytest ended with {exit_code})\n{output}")
        return caught[0]

    def _check_selection(self, mutant: Mutant) -> None:
        """Without the patch the same tests pass, and all are about this id. Once for each selection."""
        with self._counting:
            lock = self._sound.setdefault(mutant.tests, threading.Lock())
        with lock:
            if mutant.tests in self._checked:
                return
            exit_code, report, output = run(self._plain, mutant.tests)
            if exit_code != 0:
                raise MissedError(f"the tests do not pass without the patch (pytest ended with {exit_code})\n{output}")
            strangers = [test for test, words in report["selected"].items() if not names(words, mutant.id)]
            if strangers:
                raise MissedError(f"selected, but does not name {mutant.id}: {', '.join(strangers)}")
            self._checked.add(mutant.tests)

    def _fresh_copy(self) -> Path:
        with self._counting:
            self._copies += 1
            place = self._place / f"mutant-{self._copies}"
        copy(self._plain, place)
        return place


def names(docstring: str, id: str) -> bool:
    return re.search(rf"\b{id}\b", docstring) is not None


def copy(code: Path, place: Path) -> None:
    place.mkdir()
    for name in COPIED:
        if (code / name).is_dir():
            shutil.copytree(code / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(code / name, place / name)


def apply(patch: Path, code: Path) -> None:
    """Without fuzz: a hunk whose lines are not there as it says is an error."""
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(code.parent)}  # the copy belongs to no repository
    done = subprocess.run(
        ["git", "apply", str(patch)], cwd=code, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise MissedError(f"the patch does not apply; renew it\n{done.stderr}")


def run(code: Path, tests: str) -> tuple[int, Report, str]:
    """pytest on this copy: its exit code, what the plugin reported, and the end of what it printed."""
    with tempfile.TemporaryDirectory(dir=code) as scratch:
        report = Path(scratch) / "report.json"
        environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"},
            "PYTHONPATH": os.pathsep.join([str(code / "src"), str(code)]),
            "PYTHONDONTWRITEBYTECODE": "1",
            REPORT: str(report),
        }
        options = ["-ptests.mutants.report_plugin", "-pno:cacheprovider", "-q", "--no-header", "--maxfail=1"]
        limits = [f"--timeout={TEST_GUARD}", f"--basetemp={scratch}/files"]
        command = [sys.executable, "-m", "pytest", *options, *limits, *shlex.split(tests)]
        try:
            done = subprocess.run(
                command, cwd=code, env=environment, capture_output=True, text=True, check=False, timeout=RUN_GUARD
            )
        except subprocess.TimeoutExpired:
            raise MissedError(f"pytest hung for {RUN_GUARD} seconds") from None
        output = "\n".join((done.stdout + done.stderr).splitlines()[-30:])
        if not report.exists():
            raise MissedError(f"pytest did not get to the tests (it ended with {done.returncode})\n{output}")
        seen: Report = json.loads(report.read_text())
    if not Path(seen["package"]).is_relative_to(code):
        raise MissedError(f"the tests ran on {seen['package']} and not on the copy")
    return done.returncode, seen, output


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", metavar="ID", help="an id (C3) or a name (settle-twice)")
    only: str | None = parser.parse_args().only
    caught = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as place, ThreadPoolExecutor(JOBS) as pool:
        bench = Bench(Path(place).resolve())
        mutants = [mutant for mutant in bench.mutants if only in (None, mutant.id, mutant.name)]
        missing = [] if only else list(absent(mutants))
        for what in missing:
            print(f"MISSING  {what}: no patch breaks it")
        began = {pool.submit(timed, bench, mutant): mutant for mutant in mutants}
        for done in as_completed(began):
            mutant, (seconds, by, why) = began[done], done.result()
            caught += by is not None
            print(f"{'caught' if by else 'MISSED':8} {mutant.path.stem} ({seconds:.1f} s)  {by or why}", flush=True)
    print(f"mutants: {caught} of {len(mutants) + len(missing)} caught")
    return 0 if mutants and caught == len(mutants) + len(missing) else 1


def timed(bench: Bench, mutant: Mutant) -> tuple[float, str | None, str]:
    began = time.monotonic()
    try:
        by, why = bench.catch(mutant), ""
    except MissedError as missed:
        by, why = None, f"{mutant.breaks}\n         {missed}"
    return time.monotonic() - began, by, why


if __name__ == "__main__":
    sys.exit(main())
