"""`holdfast personas`: lists, shows, creates and deletes personas. What they are: `core.personas`."""

from typing import Annotated

import typer

from holdfast.cli.context import AsJson, CliContext, ConfigFile, DataDir

PersonaArgument = Annotated[str, typer.Argument(metavar="PERSONA", help="The id of a persona.")]
_SHOWN = ("emoji", "model", "use_tools", "instructions")


def add(root: typer.Typer, context: CliContext) -> None:
    app = typer.Typer(help="Manage personas.", no_args_is_help=True)
    root.add_typer(app, name="personas")

    @app.command("list", epilog="Example: holdfast personas list")
    def list_personas(as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None) -> None:
        """List personas by name."""
        found = context.call_api(context.config(data_dir, config), "GET", "personas")["items"]
        context.terminal.items(
            found,
            as_json,
            ("persona", "name", "model"),
            lambda each: (each["id"], each["name"], each["model"] or ""),
            "No personas.",
        )

    @app.command("show", epilog="Example: holdfast personas show per_01h…")
    def show_persona(
        persona: PersonaArgument, as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None
    ) -> None:
        """Print the model and the instructions of a persona."""
        found = context.call_api(context.config(data_dir, config), "GET", "personas", persona)
        if as_json:
            context.terminal.json(found)
            return
        context.terminal.line(found["name"], "bold underline")
        rows = [(name.replace("_", " "), str(found[name])) for name in _SHOWN if found[name] is not None]
        context.terminal.table(("setting", "value"), rows)

    @app.command("create", epilog='Example: holdfast personas create "Harbor master" --emoji ⚓')
    def create_persona(
        name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the persona.")],
        emoji: Annotated[str | None, typer.Option(metavar="EMOJI", help="Its picture.")] = None,
        instructions: Annotated[str | None, typer.Option(metavar="TEXT", help="Its system prompt.")] = None,
        model: Annotated[str | None, typer.Option(metavar="MODEL", help="Its model.")] = None,
        tools: Annotated[
            bool | None, typer.Option("--tools/--no-tools", help="Whether it has tools; else as by default.")
        ] = None,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Create a persona and print its id."""
        given = {"name": name, "emoji": emoji, "instructions": instructions, "model": model, "use_tools": tools}
        body = {field: value for field, value in given.items() if value is not None}
        made = context.call_api(context.config(data_dir, config), "POST", "personas", body=body, creates=True)
        context.terminal.line(made["id"])

    @app.command("delete", epilog="Example: holdfast personas delete per_01h…")
    def delete_persona(persona: PersonaArgument, data_dir: DataDir = None, config: ConfigFile = None) -> None:
        """Delete a persona. Its chats go on without it, and their answers keep its name."""
        context.call_api(context.config(data_dir, config), "DELETE", "personas", persona)
        context.terminal.note(f"Deleted {persona}.")
