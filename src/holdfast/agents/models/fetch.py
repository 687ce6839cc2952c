"""`python -m holdfast.agents.models.fetch`: what `make install` runs. Never fails: without the weights the demo model
answers, and says so."""

import os
import sys
from pathlib import Path
from typing import TextIO

from holdfast.agents.models.weights import PullFailed, default_directory, find, pull


class Bar:
    """A progress bar on a terminal; elsewhere one line at the start."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._drawn = -1

    def __call__(self, done: int, total: int) -> None:
        percent = min(100, 100 * done // max(total, 1))
        if self._drawn < 0:
            self._out.write(f"Fetching a small local model ({total // 1_000_000} MB)\n")
        if self._out.isatty() and percent != self._drawn:
            self._out.write(f"\r  [{'#' * (percent // 4):25}] {percent:3} %" + ("\n" if percent == 100 else ""))
        self._drawn = percent
        self._out.flush()


def main() -> None:
    directory = default_directory(os.environ, Path(os.path.expanduser("~")))
    if find(directory) is not None:
        return
    try:
        path = pull(directory, Bar(sys.stderr))
    except PullFailed as error:
        sys.stderr.write(f"Warning: {error}\nHoldfast works without it; `holdfast models pull` tries again.\n")
    else:
        sys.stderr.write(f"  {path}\n")


if __name__ == "__main__":
    main()
