"""`holdfast sessions`: lists, searches and prints conversations."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Final

import typer

from holdfast.cli import rendering, shares
from holdfast.cli.context import AsJson, CliContext, ConfigFile, DataDir, Limit, SessionArgument
from holdfast.cli.server_connection import ServerConnection, api_path
from holdfast.cli.terminal import format_age, one_line

_TITLE: Final = 24
_BEFORE_MATCH: Final = 12  # Characters shown before a word that was found


def add(root: typer.Typer, context: CliContext) -> None:
    app = typer.Typer(help="Manage sessions.", no_args_is_help=True)
    root.add_typer(app, name="sessions")
    _add_list_commands(app, context)
    shares.add(app, context)

    @app.command("show", epilog="Example: holdfast sessions show ses_01h…")
    def show_session(
        session: SessionArgument, as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None
    ) -> None:
        """Print a conversation (the branch that is shown)."""

        async def work(connection: ServerConnection) -> tuple[Any, list[Any]]:
            details = await connection.client.call("GET", api_path("sessions", session))
            pages = [page async for page in connection.client.pages(api_path("sessions", session, "messages"), {})]
            return details, [item for page in reversed(pages) for item in page]  # the newest page comes first

        details, messages = context.with_server(context.config(data_dir, config), work)
        if as_json:
            context.terminal.json({**details, "messages": messages})
            return
        context.terminal.line(details["title"] or details["id"], "bold underline")
        context.terminal.line()
        for item in messages:
            rendering.print_message(context.terminal, item)


def _add_list_commands(app: typer.Typer, context: CliContext) -> None:
    @app.command("list", epilog="Example: holdfast sessions list --limit 5")
    def list_sessions(
        archived: Annotated[bool, typer.Option("--archived", help="List archived sessions.")] = False,
        project: Annotated[str | None, typer.Option(metavar="NAME", help="Only sessions of this project.")] = None,
        limit: Limit = 20,
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """List sessions, most recently active first."""
        params = {"archived": str(archived).lower(), **({} if project is None else {"project": project})}
        found = context.list_api(context.config(data_dir, config), "sessions", params, limit)
        _print_sessions(context, found, as_json, "title", lambda each: each["title"] or "(untitled)")

    @app.command(epilog="Example: holdfast sessions search high tide")
    def search(
        words: Annotated[
            list[str], typer.Argument(metavar="WORD", help="Words that the title or a message must contain.")
        ],
        limit: Limit = 20,
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Search titles and messages."""
        found = context.list_api(context.config(data_dir, config), "sessions", {"query": " ".join(words)}, limit)
        _print_sessions(context, found, as_json, "match", partial(_excerpt, words))


def _print_sessions(
    context: CliContext, found: Sequence[Any], as_json: bool, header: str, text: Callable[[Any], str]
) -> None:
    context.terminal.items(
        found,
        as_json,
        ("session", "age", header),
        lambda each: (each["id"], format_age(each["updated_at"]), text(each)),
        "No sessions.",
    )


def _excerpt(words: Sequence[str], item: dict[str, Any]) -> str:
    """The title and the text around the first word found, which must not be cut off at the end of the line."""
    title, excerpt = item["title"] or "", (item.get("match") or {}).get("excerpt") or ""
    text = excerpt.lower()
    at = min((found for word in words if (found := text.find(word.lower())) >= 0), default=0)
    if at > _BEFORE_MATCH:
        excerpt = f"…{excerpt[at - _BEFORE_MATCH :]}"
    return f"{one_line(title, _TITLE)}: {excerpt}" if title and excerpt != title else excerpt or title
