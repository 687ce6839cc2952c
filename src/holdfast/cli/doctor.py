"""`holdfast doctor`: checks the installation and its data."""

import os
import platform
import sqlite3
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import typer

from holdfast import __version__
from holdfast.cli.context import AsJson, CliContext, ConfigFile, DataDir
from holdfast.cli.exit_codes import ExitCode
from holdfast.cli.terminal import Terminal
from holdfast.ports.check_result import CheckResult

if TYPE_CHECKING:
    from holdfast.config import Config

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
            findings = [*_check_installation(settings), *app.examine(settings)]
            if context.agents is None:
                findings.append(anyio.run(check_models, settings, os.environ, Path.home()))
            status = anyio.run(shell_sandbox(settings, Path.home()).status)
            is_fine = status.active or settings.shell.sandbox != "required"
            findings.append(CheckResult("shell sandbox", is_fine, str(status)))
        ok = all(finding.ok for finding in findings)
        if as_json:
            context.terminal.json({"ok": ok, "findings": [asdict(each) for each in findings]})
        else:
            _print_findings(context.terminal, findings)
        raise typer.Exit(ExitCode.OK if ok else ExitCode.FAILED)


def _check_installation(config: "Config") -> list[CheckResult]:
    return [
        CheckResult("holdfast", True, __version__),
        CheckResult("python", sys.version_info >= (3, 11), platform.python_version()),
        CheckResult("sqlite", sqlite3.sqlite_version_info >= OLDEST_SQLITE, sqlite3.sqlite_version),
        CheckResult("settings", True, f"valid; data directory {config.data_dir}"),
    ]


def _print_findings(terminal: Terminal, findings: Sequence[CheckResult]) -> None:
    for each in findings:
        terminal.line(f"{'ok  ' if each.ok else 'FAIL'}  {each.what}: {each.text}", "" if each.ok else "yellow")
    failed = sum(not each.ok for each in findings)
    terminal.note(f"{failed} of {len(findings)} checks need attention." if failed else "All checks passed.")
