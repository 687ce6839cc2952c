"""`holdfast doctor`: is everything as it should be?"""

import platform
import sqlite3
import sys
from collections.abc import Sequence

import typer

from holdfast import __version__
from holdfast.config import Config
from holdfast.faces.cli.desk import AsJson, ConfigFile, DataDir, Desk, Finding
from holdfast.faces.cli.exits import Exit

OLDEST_SQLITE = (3, 37, 0)


def add(app: typer.Typer, desk: Desk) -> None:
    @app.command()
    def doctor(as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None) -> None:
        """Look through the data directory, the databases, the journal, the disk and the settings. Changes nothing.

        Ends with 0 if all is well and with 1 if something needs attention.

        \b
        Example:
          holdfast doctor --json
        """
        settings = desk.config(data_dir, config)
        with desk.reporting():
            found = [*_about(settings), *desk.examine(settings)]
        if as_json:
            desk.screen.json({"ok": all(f.ok for f in found), "findings": [_json(f) for f in found]})
        else:
            _print(desk, found)
        raise typer.Exit(Exit.OK if all(each.ok for each in found) else Exit.FAILED)


def _about(config: Config) -> list[Finding]:
    sqlite = sqlite3.sqlite_version
    return [
        Finding("holdfast", True, __version__),
        Finding("python", sys.version_info >= (3, 11), platform.python_version()),
        Finding("sqlite", sqlite3.sqlite_version_info >= OLDEST_SQLITE, sqlite),
        Finding("settings", True, f"read; data directory {config.data_dir}"),
    ]


def _json(finding: Finding) -> dict[str, str | bool]:
    return {"what": finding.what, "ok": finding.ok, "text": finding.text}


def _print(desk: Desk, found: Sequence[Finding]) -> None:
    for each in found:
        desk.screen.line(f"{'ok  ' if each.ok else 'LOOK'}  {each.what}: {each.text}", "" if each.ok else "yellow")
    bad = sum(not each.ok for each in found)
    desk.screen.note("All is well." if not bad else f"{bad} of {len(found)} need attention.")
