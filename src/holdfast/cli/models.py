"""`holdfast models`: lists models and downloads the small local one."""

from functools import partial

import typer

from holdfast.cli.connect import CommandServerNeeds
from holdfast.cli.context import AsJson, CliContext, ConfigFile, DataDir


def add(root: typer.Typer, context: CliContext) -> None:
    app = typer.Typer(help="Manage models.", no_args_is_help=True)
    root.add_typer(app, name="models")

    @app.command("list", epilog="Example: holdfast models list")
    def list_models(as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None) -> None:
        """List models and whether each is available."""
        settings = context.config(data_dir, config)
        found = context.call_api(settings, "GET", "models", creates=True, needs=CommandServerNeeds.MODELS)
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
        """Download the small model that runs on this machine without an API key."""
        from holdfast.app.models import download_model

        with context.report_errors(), context.terminal.progress() as report:
            file = download_model(partial(report, "Downloading"))
        context.terminal.note(f"Downloaded to {file}")
