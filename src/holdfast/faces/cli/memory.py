"""`holdfast memory`: what is remembered, and how a conversation stands with it."""

from typing import Annotated, Any

import typer

from holdfast.faces.cli.client import path
from holdfast.faces.cli.desk import AsJson, ConfigFile, DataDir, Desk
from holdfast.faces.cli.paging import pages
from holdfast.faces.cli.reach import Line, Needs
from holdfast.faces.cli.screen import ago

Limit = Annotated[int, typer.Option(min=1, help="At most so many.")]
FactArgument = Annotated[str, typer.Argument(metavar="FACT", help="Id of a fact.")]
SessionArgument = Annotated[str, typer.Argument(metavar="SESSION", help="Id of a session.")]


def add(root: typer.Typer, desk: Desk) -> None:
    app = typer.Typer(help="What is remembered.", no_args_is_help=True)
    root.add_typer(app, name="memory")

    @app.command("list")
    def list_facts(
        words: Annotated[list[str] | None, typer.Argument(help="Only facts that have all of these.")] = None,
        limit: Limit = 50,
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """What the built-in memory knows, the last changed first.

        \b
        Examples:
          holdfast memory list
          holdfast memory list lisbon
        """
        params = {"query": " ".join(words)} if words else {}

        async def work(line: Line) -> list[Any]:
            return [item async for item in pages(line.client, path("memory"), params, limit)]

        found = desk.at_server(desk.config(data_dir, config), work)
        if as_json:
            desk.screen.json(found)
            return
        rows = [
            (each["id"], ago(each["updated_at"]), "pinned" if each["pinned"] else "", each["text"]) for each in found
        ]
        desk.screen.table(("fact", "age", "", "text"), rows)

    @app.command("change")
    def change_fact(
        fact: FactArgument,
        text: Annotated[str | None, typer.Option(help="Say it so.")] = None,
        pin: Annotated[bool | None, typer.Option("--pin/--unpin", help="Whether models are always told.")] = None,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Say a fact better, or pin it.

        \b
        Example:
          holdfast memory change fct_01h… --text "Lives in Porto." --pin
        """
        body = {name: value for name, value in (("text", text), ("pinned", pin)) if value is not None}

        async def work(line: Line) -> Any:
            return await line.client.call("PATCH", path("memory", fact), body=body)

        changed = desk.at_server(desk.config(data_dir, config), work)
        desk.screen.line(changed["text"])

    @app.command("delete")
    def delete_fact(fact: FactArgument, data_dir: DataDir = None, config: ConfigFile = None) -> None:
        """Forget a fact.

        \b
        Example:
          holdfast memory delete fct_01h…
        """

        async def work(line: Line) -> None:
            await line.client.call("DELETE", path("memory", fact))

        desk.at_server(desk.config(data_dir, config), work)
        desk.screen.note("Forgotten.")

    @app.command("status")
    def status(
        session: SessionArgument, as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None
    ) -> None:
        """How many turns of a conversation are remembered, and why not more.

        \b
        Example:
          holdfast memory status ses_01h…
        """

        async def work(line: Line) -> Any:
            return await line.client.call("GET", path("sessions", session, "memory"))

        _show(desk, desk.at_server(desk.config(data_dir, config), work), as_json)

    @app.command("commit")
    def commit(
        session: SessionArgument,
        provider: Annotated[str | None, typer.Option(help="Who is to remember it from now on.")] = None,
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Remember now what was said in a conversation.

        \b
        Example:
          holdfast memory commit ses_01h…
        """
        body = {} if provider is None else {"provider": provider}

        async def work(line: Line) -> Any:
            return await line.client.call("POST", path("sessions", session, "memory", "commit"), body=body)

        done = desk.at_server(desk.config(data_dir, config), work, needs=Needs.MODELS)
        if not as_json:
            desk.screen.note("Nothing is new." if done["nothing_new"] else f"Committed {done['committed']} turns.")
        _show(desk, done, as_json)


def _show(desk: Desk, found: Any, as_json: bool) -> None:
    if as_json:
        desk.screen.json(found)
        return
    told = f"{found['committed_turns']} turns remembered, {found['dirty_turns']} to go"
    by = f", by {found['provider']}" if found["provider"] else ""
    desk.screen.line(told + by + (", being committed now" if found["committing"] else ""))
    if found["last_error"]:
        desk.screen.line(found["last_error"])
