"""`holdfast doctor`: checks the installation and its data."""

import os
import platform
import sqlite3
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Final

import anyio
import typer

from holdfast import __version__
from holdfast.cli.context import AsJson, CliContext, ConfigFile, DataDir
from holdfast.cli.exit_codes import ExitCode
from holdfast.ports.check_result import CheckResult

OLDEST_SQLITE: Final = (3, 37, 0)


def add(root: typer.Typer, context: CliContext) -> None:
    @root.command(epilog="Example: holdfast doctor --json")
    def doctor(as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None) -> None:
        """Check the data directory, databases, journal, disk, settings and models. Changes nothing.

        Exits with 0 if everything is fine and with 1 if something needs attention.
        """
        from holdfast import app
        from holdfast.app.agents import shell_sandbox
        from holdfast.app.models import check_models

        settings = context.config(data_dir, config)
        with context.report_errors():
            findings = [
                CheckResult("holdfast", True, __version__),
                CheckResult("python", sys.version_info >= (3, 11), platform.python_version()),
                CheckResult("sqlite", sqlite3.sqlite_version_info >= OLDEST_SQLITE, sqlite3.sqlite_version),
                CheckResult("settings", True, f"valid; data directory {settings.data_dir}"),
                *app.examine(settings),
            ]
            if context.agents is None:
                findings.append(anyio.run(check_models, settings, os.environ, Path.home()))
            status = anyio.run(shell_sandbox(settings, Path.home()).status)
            is_fine = status.active or settings.shell.sandbox != "required"
            findings.append(CheckResult("shell sandbox", is_fine, str(status)))
        failed = sum(not each.ok for each in findings)
        if as_json:
            context.terminal.json({"ok": not failed, "findings": [asdict(each) for each in findings]})
        else:
            for each in findings:
                mark, style = ("ok  ", "") if each.ok else ("FAIL", "yellow")
                context.terminal.line(f"{mark}  {each.what}: {each.text}", style)
            verdict = f"{failed} of {len(findings)} checks need attention." if failed else "All checks passed."
            context.terminal.note(verdict)
        raise typer.Exit(ExitCode.FAILED if failed else ExitCode.OK)
