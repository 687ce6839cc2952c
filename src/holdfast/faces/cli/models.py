"""`holdfast models`: what can be asked, and the small model for this machine."""

from typing import Any

import typer

from holdfast.faces.cli.client import path
from holdfast.faces.cli.desk import AsJson, ConfigFile, DataDir, Desk
from holdfast.faces.cli.reach import Line, Needs


def add(root: typer.Typer, desk: Desk) -> None:
    app = typer.Typer(help="Models.", no_args_is_help=True)
    root.add_typer(app, name="models")

    @app.command("list")
    def list_models(as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None) -> None:
        """What can be asked, and what cannot just now, with the reason.

        \b
        Example:
          holdfast models list
        """

        async def work(line: Line) -> Any:
            return await line.client.call("GET", path("models"))

        found = desk.at_server(desk.config(data_dir, config), work, makes=True, needs=Needs.MODELS)
        if as_json:
            desk.screen.json(found)
            return
        rows = [
            (item["id"], "default" if item["id"] == found["default"] else "", _state(item)) for item in found["items"]
        ]
        desk.screen.table(("model", "", "state"), rows)

    @app.command("pull")
    def pull() -> None:
        """Fetch the small model that answers on this machine without any key.

        \b
        Example:
          holdfast models pull
        """
        with desk.reporting(), desk.screen.progress() as bar:
            task = bar.add_task("Fetching", total=None)
            there = desk.pull(lambda done, total: bar.update(task, completed=done, total=total))
        desk.screen.note(f"It is there: {there}")


def _state(item: dict[str, Any]) -> str:
    return f"{item['name']}" if item["available"] else f"{item['name']}: {item['reason'] or 'not available'}"
