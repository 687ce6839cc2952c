"""`holdfast projects`: lists, shows, creates and deletes projects. What they are: `core.project`."""

from typing import Annotated, Any

import typer

from holdfast.cli.context import AsJson, CliContext, ConfigFile, DataDir, Limit
from holdfast.cli.server_connection import ServerConnection, api_path
from holdfast.cli.terminal import Terminal, format_age

ProjectArgument = Annotated[str, typer.Argument(metavar="PROJECT", help="The name or id of a project.")]
_SHOWN = ("model", "agent", "memory", "temperature", "top_p", "max_tokens", "reasoning_effort", "use_tools")


def add(root: typer.Typer, context: CliContext) -> None:
    app = typer.Typer(help="Manage projects.", no_args_is_help=True)
    root.add_typer(app, name="projects")
    _add_reading_commands(app, context)
    _add_changing_commands(app, context)


def _add_reading_commands(app: typer.Typer, context: CliContext) -> None:
    @app.command("list", epilog="Example: holdfast projects list")
    def list_projects(
        archived: Annotated[bool, typer.Option("--archived", help="List archived projects.")] = False,
        limit: Limit = 100,
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """List projects by name."""
        params = {"archived": str(archived).lower()}
        found = context.list_api(context.config(data_dir, config), "projects", params, limit)
        context.terminal.items(
            found,
            as_json,
            ("project", "chats", "age", "name"),
            lambda each: (each["id"], str(each["chats"]), format_age(each["updated_at"]), each["name"]),
            "No projects.",
        )

    @app.command("show", epilog='Example: holdfast projects show "Harbor office"')
    def show_project(
        project: ProjectArgument, as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None
    ) -> None:
        """Print the instructions, settings and files of a project."""
        found = context.call_api(context.config(data_dir, config), "GET", "projects", project)
        if as_json:
            context.terminal.json(found)
        else:
            _print(context.terminal, found)


def _add_changing_commands(app: typer.Typer, context: CliContext) -> None:
    @app.command("create", epilog='Example: holdfast projects create "Harbor office" --instructions "Be brief."')
    def create_project(
        name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the project.")],
        instructions: Annotated[
            str | None, typer.Option(metavar="TEXT", help="The system prompt of its chats.")
        ] = None,
        model: Annotated[str | None, typer.Option(metavar="MODEL", help="The model of its chats.")] = None,
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Create a project."""
        given = {"name": name, "instructions": instructions, "model": model}
        body = {field: value for field, value in given.items() if value is not None}
        made = context.call_api(context.config(data_dir, config), "POST", "projects", body=body, creates=True)
        if as_json:
            context.terminal.json(made)
        else:
            context.terminal.line(made["id"])

    @app.command("delete", epilog='Example: holdfast projects delete "Harbor office"')
    def delete_project(
        project: ProjectArgument,
        delete_chats: Annotated[
            bool, typer.Option("--delete-chats", help="Delete its chats too; otherwise they are kept.")
        ] = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Delete a project with its own memory. Its chats are kept, without a project, unless told otherwise."""

        async def work(connection: ServerConnection) -> None:
            params = {"delete_chats": str(delete_chats).lower()}
            await connection.client.call("DELETE", api_path("projects", project), params=params)

        context.with_server(context.config(data_dir, config), work)
        context.terminal.note(f"Deleted {project}.")


def _print(terminal: Terminal, found: Any) -> None:
    terminal.line(found["name"], "bold underline")
    if found["instructions"]:
        terminal.line(found["instructions"])
    rows = [(name.replace("_", " "), str(found[name])) for name in _SHOWN if found[name] is not None]
    rows += [("chats", str(found["chats"])), *(("file", file["name"]) for file in found["files"])]
    terminal.table(("setting", "value"), rows)
