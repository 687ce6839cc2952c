"""`holdfast models`: lists models and downloads the small local one. Which are offered: `models.catalog`."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from holdfast.cli.context import AsJson, CliContext, ConfigFile, DataDir
from holdfast.cli.server_connection import CommandServerPurpose
from holdfast.cli.terminal import Terminal
from holdfast.core.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.config import Config

_QUESTION: Final = "Download a small model that answers on this machine without an API key"


def add(root: typer.Typer, context: CliContext) -> None:
    app = typer.Typer(help="Manage models.", no_args_is_help=True)
    root.add_typer(app, name="models")

    @app.command("list", epilog="Example: holdfast models list")
    def list_models(as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None) -> None:
        """List models and whether each is available."""
        settings = context.config(data_dir, config)
        found = context.call_api(settings, "GET", "models", creates=True, purpose=CommandServerPurpose.MODELS)
        if as_json:
            context.terminal.json(found)
            return
        rows = []
        for item in found["items"]:
            state = "available" if item["available"] else item["reason"] or "unavailable"
            rows.append((item["id"], item["name"], "default" if item["id"] == found["default"] else "", state))
        context.terminal.table(("model", "name", "", "state"), rows)

    @app.command("pull", epilog="Example: holdfast models pull")
    def pull() -> None:
        """Download the small model that runs on this machine without an API key, and its runtime."""
        with context.report_errors():
            context.terminal.note(f"Downloaded to {_download(context)}")


def wants_model(terminal: Terminal, config: "Config", answer: bool | None) -> bool:
    """Whether to download the small model before the server starts. Without an answer on the command line, a person at
    a terminal is asked, at the first start only."""
    if answer is False or (answer is None and (config.has_data or not (sys.stdin.isatty() and sys.stdout.isatty()))):
        return False
    from holdfast.app.models import download_size

    if (size := download_size()) == 0:
        return False
    return answer or typer.confirm(f"{_QUESTION} ({size // 1_000_000} MB)?", default=True)


def download_model(context: CliContext) -> None:
    """Downloads the small model, or says why that failed: the server starts anyway."""
    try:
        _download(context)
    except HoldfastError as error:
        context.terminal.note(f"{error} Holdfast works without it; `holdfast models pull` tries again.", "yellow")


def _download(context: CliContext) -> Path:
    from holdfast.app import models

    with context.terminal.progress() as report:
        file = models.download_weights(partial(report, "Downloading"))
    if models.lacks_runtime():
        context.terminal.note("Installing the program that runs it …")
    models.install_runtime()
    return file
