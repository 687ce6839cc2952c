"""`holdfast doctor`: checks the installation here, the data directory in `storage.data_dir_check` (in a cluster
`storage.postgres.health_check` and `storage.redis.health_check`), models in `app.models`, the sandbox in
`tools.shell_sandbox`."""

import os
import platform
import sqlite3
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import typer

from holdfast import __version__
from holdfast.cli.context import AsJson, CliContext, ConfigFile, DataDir
from holdfast.cli.exit_codes import ExitCode
from holdfast.cli.server_connection import api_path, ask_running_server
from holdfast.cli.terminal import count_of
from holdfast.ports.health_check import CheckResult

if TYPE_CHECKING:
    from holdfast.config import Config

OLDEST_SQLITE: Final = (3, 37, 0)


def check_user(user: int) -> CheckResult:
    if user:
        return CheckResult("user", True, f"user {user}")
    text = (
        "the server would run as root, and so would the commands of agents. Start it as an ordinary user that owns the "
        "data directory; with systemd, set User= in its unit"
    )
    return CheckResult("user", True, text, warning=True)


async def _check_models(context: CliContext, config: "Config") -> list[CheckResult]:
    """The models of the running server, whose environment may differ from the shell's; without one, those of the
    shell's environment."""
    from holdfast.app.models import check_models, summarize_models

    found = await ask_running_server(config, api_path("models"))
    if found is not None:
        models = [(item["id"], None if item["available"] else item["reason"]) for item in found["items"]]
        return [summarize_models(models, found["default"], "the running server")] if models else []
    if context.agents is not None:
        return []
    return [await check_models(config, os.environ, Path.home())]


def add(root: typer.Typer, context: CliContext) -> None:
    @root.command(epilog="Example: holdfast doctor --json")
    def doctor(as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None) -> None:
        """Check the data directory, databases, journal, disk, settings and models. Changes nothing.

        Exits with 1 if a check fails. Warnings alone are a success.
        """
        from holdfast import app
        from holdfast.app.agents import shell_sandbox

        settings = context.config(data_dir, config)
        with context.report_errors():
            findings = [
                CheckResult("holdfast", True, __version__),
                CheckResult("python", sys.version_info >= (3, 11), platform.python_version()),
                CheckResult("sqlite", sqlite3.sqlite_version_info >= OLDEST_SQLITE, sqlite3.sqlite_version),
                check_user(os.geteuid()),
                CheckResult("settings", True, f"valid; data directory {settings.data_dir}"),
                *app.examine(settings),
            ]
            findings += anyio.run(_check_models, context, settings)
            status = anyio.run(shell_sandbox(settings, Path.home()).status)
            is_fine = status.active or settings.shell.sandbox != "required"
            findings.append(CheckResult("shell sandbox", is_fine, str(status)))
        failed, warnings = sum(not each.ok for each in findings), sum(each.warning for each in findings)
        if as_json:
            context.terminal.json({"ok": not failed, "findings": [asdict(each) for each in findings]})
        else:
            for each in findings:
                mark, style = (
                    ("FAIL", "yellow") if not each.ok else ("WARN", "yellow") if each.warning else ("ok  ", "")
                )
                context.terminal.line(f"{mark}  {each.what}: {each.text}", style)
            need = "needs" if failed == 1 else "need"
            verdict = f"{failed} of {len(findings)} checks {need} attention." if failed else "All checks passed."
            noted = f" {count_of(warnings, 'warning')}." if warnings else ""
            context.terminal.note(verdict + noted)
        raise typer.Exit(ExitCode.FAILED if failed else ExitCode.OK)
