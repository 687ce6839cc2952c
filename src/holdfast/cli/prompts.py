"""`holdfast prompts`: lists, shows, saves, fills, deletes, exports and imports saved prompts. What they are:
`core.saved_prompts`."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli.context import AsJson, CliContext, ConfigFile, DataDir, Limit
from holdfast.cli.server_connection import ServerConnection, api_path
from holdfast.core.errors import InvalidInputError

PromptArgument = Annotated[str, typer.Argument(metavar="PROMPT", help="The name or id of a prompt.")]
_MAX_IMPORT = 64 * 1024 * 1024  # Bytes


def add(root: typer.Typer, context: CliContext) -> None:
    app = typer.Typer(help="Manage saved prompts.", no_args_is_help=True)
    root.add_typer(app, name="prompts")
    _add_reading_commands(app, context)
    _add_changing_commands(app, context)
    _add_transfer_commands(app, context)


def _add_reading_commands(app: typer.Typer, context: CliContext) -> None:
    @app.command("list", epilog="Example: holdfast prompts list")
    def list_prompts(
        limit: Limit = 1000, as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None
    ) -> None:
        """List saved prompts by name."""
        found = context.list_api(context.config(data_dir, config), "prompts", {}, limit)
        context.terminal.items(
            found,
            as_json,
            ("name", "variables", "description"),
            lambda each: (each["name"], ", ".join(item["name"] for item in each["variables"]), each["description"]),
            "No prompts.",
        )

    @app.command("show", epilog="Example: holdfast prompts show summarize")
    def show_prompt(
        prompt: PromptArgument, as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None
    ) -> None:
        """Print a prompt as it is saved, with its variables."""
        found = context.call_api(context.config(data_dir, config), "GET", "prompts", prompt)
        if as_json:
            context.terminal.json(found)
        else:
            context.terminal.line(found["text"])

    @app.command("fill", epilog="Example: holdfast prompts fill summarize topic=tides | holdfast chat")
    def fill_prompt(
        prompt: PromptArgument,
        values: Annotated[list[str] | None, typer.Argument(metavar="[NAME=VALUE]…", help="Its variables.")] = None,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Print a prompt with values for its variables."""
        with context.report_errors():
            body = {"values": _parse_values(values or ())}
        found = context.call_api(context.config(data_dir, config), "POST", "prompts", prompt, "fill", body=body)
        context.terminal.line(found["text"])


def _parse_values(values: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for value in values:
        name, separator, content = value.partition("=")
        if not separator:
            raise InvalidInputError("values", f"must be of the form NAME=VALUE, and {value!r} is not")
        found[name] = content
    return found


def _add_changing_commands(app: typer.Typer, context: CliContext) -> None:
    @app.command("save", epilog='Example: holdfast prompts save summarize "Summarize {{topic}} in one paragraph."')
    def save_prompt(
        name: Annotated[str, typer.Argument(metavar="NAME", help="Lowercase letters, digits, - and _.")],
        text: Annotated[str | None, typer.Argument(metavar="TEXT", help="The prompt; without it, stdin.")] = None,
        description: Annotated[str | None, typer.Option(metavar="TEXT", help="What it is for.")] = None,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Save a prompt, or change the one with this name."""
        given = {"text": sys.stdin.read() if text is None else text, "description": description}
        body = {field: value for field, value in given.items() if value is not None}

        async def work(connection: ServerConnection) -> bool:
            names = [item["name"] async for page in connection.client.pages(api_path("prompts"), {}) for item in page]
            if name in names:
                await connection.client.call("PATCH", api_path("prompts", name), body=body)
            else:
                await connection.client.call("POST", api_path("prompts"), body={"name": name, **body})
            return name in names

        changed = context.with_server(context.config(data_dir, config), work, creates=True)
        context.terminal.note(f"{'Changed' if changed else 'Saved'} {name}.")

    @app.command("delete", epilog="Example: holdfast prompts delete summarize")
    def delete_prompt(prompt: PromptArgument, data_dir: DataDir = None, config: ConfigFile = None) -> None:
        """Delete a prompt."""
        context.call_api(context.config(data_dir, config), "DELETE", "prompts", prompt)
        context.terminal.note(f"Deleted {prompt}.")


def _add_transfer_commands(app: typer.Typer, context: CliContext) -> None:
    @app.command("export", epilog="Example: holdfast prompts export > prompts.json")
    def export_prompts(data_dir: DataDir = None, config: ConfigFile = None) -> None:
        """Print all prompts as JSON, for `holdfast prompts import`."""
        context.terminal.json(context.call_api(context.config(data_dir, config), "GET", "prompts", "export"))

    @app.command("import", epilog="Example: holdfast prompts import prompts.json")
    def import_prompts(
        path: Annotated[Path, typer.Argument(metavar="FILE", help="An exported library; - is stdin.")],
        replace: Annotated[
            bool, typer.Option("--replace", help="Replace prompts whose names are in use; otherwise they stay.")
        ] = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Import exported prompts, all or none of them."""
        with context.report_errors():
            body = _read_library(path)

        async def work(connection: ServerConnection) -> Any:
            params = {"on_conflict": "replace" if replace else "skip"}
            return await connection.client.call("POST", api_path("prompts", "import"), params=params, body=body)

        result = context.with_server(context.config(data_dir, config), work, creates=True)
        for what in ("added", "replaced", "skipped"):
            if result[what]:
                context.terminal.note(f"{what.capitalize()}: {', '.join(result[what])}.")


def _read_library(path: Path) -> Any:
    try:
        if str(path) == "-":
            content = sys.stdin.buffer.read(_MAX_IMPORT)
        else:
            with path.open("rb") as file:
                content = file.read(_MAX_IMPORT)
        return json.loads(content)
    except OSError as error:
        raise InvalidInputError("FILE", f"cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise InvalidInputError("FILE", "must be a prompt library, as `holdfast prompts export` prints it") from None
