"""`holdfast memory`: shows and changes facts, and commits conversations to memory."""

from typing import Annotated, Any

import typer

from holdfast.cli.context import AsJson, CliContext, ConfigFile, DataDir, Limit, SessionArgument
from holdfast.cli.server_connection import CommandServerPurpose
from holdfast.cli.terminal import Terminal, count_of, format_age

FactArgument = Annotated[str, typer.Argument(metavar="FACT", help="Fact ID.")]


def add(root: typer.Typer, context: CliContext) -> None:
    app = typer.Typer(help="Manage memory.", no_args_is_help=True)
    root.add_typer(app, name="memory")
    _add_fact_commands(app, context)
    _add_session_commands(app, context)


def _add_fact_commands(app: typer.Typer, context: CliContext) -> None:
    @app.command("list")
    def list_facts(
        words: Annotated[
            list[str] | None, typer.Argument(metavar="WORD", help="Only facts that contain all these words.")
        ] = None,
        limit: Limit = 50,
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """List facts of the built-in memory, most recently changed first.

        \b
        Examples:
          holdfast memory list
          holdfast memory list lisbon
        """
        params = {"query": " ".join(words)} if words else {}
        found = context.list_api(context.config(data_dir, config), "memory", params, limit)
        context.terminal.items(
            found,
            as_json,
            ("fact", "age", "", "text"),
            lambda each: (each["id"], format_age(each["updated_at"]), _state(each), each["text"]),
            "No memories.",
        )

    @app.command("add", epilog='Example: holdfast memory add "Lives in Lisbon."')
    def add_fact(
        text: Annotated[str, typer.Argument(help="What to remember.")],
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Add a fact by hand."""
        added = context.call_api(context.config(data_dir, config), "POST", "memory", body={"text": text})
        context.terminal.line(added["id"])

    @app.command("change", epilog='Example: holdfast memory change fct_01h… --text "Lives in Porto." --pin')
    def change_fact(
        fact: FactArgument,
        text: Annotated[str | None, typer.Option(metavar="TEXT", help="New text.")] = None,
        pin: Annotated[bool | None, typer.Option("--pin/--unpin", help="Use it in every chat.")] = None,
        confirm: Annotated[
            bool | None, typer.Option("--confirm/--unconfirm", help="Allow its use, if `confirm` is set in [memory].")
        ] = None,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Edit, confirm or pin a fact."""
        fields = (("text", text), ("pinned", pin), ("confirmed", confirm))
        body = {name: value for name, value in fields if value is not None}
        changed = context.call_api(context.config(data_dir, config), "PATCH", "memory", fact, body=body)
        context.terminal.line(changed["text"])

    @app.command("delete", epilog="Example: holdfast memory delete fct_01h…")
    def delete_fact(fact: FactArgument, data_dir: DataDir = None, config: ConfigFile = None) -> None:
        """Delete a fact."""
        context.call_api(context.config(data_dir, config), "DELETE", "memory", fact)
        context.terminal.note("Deleted.")


def _add_session_commands(app: typer.Typer, context: CliContext) -> None:
    @app.command("status", epilog="Example: holdfast memory status ses_01h…")
    def status(
        session: SessionArgument, as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None
    ) -> None:
        """Show how many turns of a session are in memory."""
        found = context.call_api(context.config(data_dir, config), "GET", "sessions", session, "memory")
        _print_status(context.terminal, found, as_json)

    @app.command("commit", epilog="Example: holdfast memory commit ses_01h…")
    def commit(
        session: SessionArgument,
        provider: Annotated[
            str | None, typer.Option(metavar="NAME", help="Switch the session to this memory provider.")
        ] = None,
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Commit a session to memory now."""
        body = {} if provider is None else {"provider": provider}
        settings, purpose = context.config(data_dir, config), CommandServerPurpose.MODELS
        done = context.call_api(settings, "POST", "sessions", session, "memory", "commit", body=body, purpose=purpose)
        if not as_json:
            context.terminal.note(
                "Nothing new." if done["nothing_new"] else f"Committed {count_of(done['committed'], 'turn')}."
            )
        _print_status(context.terminal, done, as_json)


def _state(fact: Any) -> str:
    return "pinned" if fact["pinned"] else "confirmed" if fact["confirmed"] else ""


def _print_status(terminal: Terminal, found: Any, as_json: bool) -> None:
    if as_json:
        terminal.json(found)
        return
    counts = f"{count_of(found['committed_turns'], 'turn')} in memory, {found['dirty_turns']} pending"
    provider = f" (provider: {found['provider']})" if found["provider"] else ""
    terminal.line(counts + provider + (", committing now" if found["committing"] else ""))
    if found["last_error"]:
        terminal.line(found["last_error"])
