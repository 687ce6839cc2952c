"""`holdfast sessions`: find conversations and read them."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from holdfast.faces.cli import show
from holdfast.faces.cli.client import path
from holdfast.faces.cli.desk import AsJson, ConfigFile, DataDir, Desk
from holdfast.faces.cli.paging import pages
from holdfast.faces.cli.reach import Line
from holdfast.faces.cli.screen import ago

Limit = Annotated[int, typer.Option(min=1, help="At most so many.")]


def add(root: typer.Typer, desk: Desk) -> None:
    app = typer.Typer(help="Conversations.", no_args_is_help=True)
    root.add_typer(app, name="sessions")

    @app.command("list")
    def list_sessions(
        archived: Annotated[bool, typer.Option("--archived", help="Those that were put away.")] = False,
        project: Annotated[str | None, typer.Option(help="Only of this project.")] = None,
        limit: Limit = 20,
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """The newest conversations.

        \b
        Example:
          holdfast sessions list --limit 5
        """
        params = {"archived": str(archived).lower(), **({} if project is None else {"project": project})}

        async def work(line: Line) -> list[Any]:
            return [item async for item in pages(line.client, path("sessions"), params, limit)]

        found = desk.at_server(desk.config(data_dir, config), work)
        if as_json:
            desk.screen.json(found)
            return
        rows = [(each["id"], ago(each["updated_at"]), each["title"] or "(no title)") for each in found]
        desk.screen.table(("session", "age", "title"), rows)

    @app.command()
    def search(
        words: Annotated[list[str], typer.Argument(help="All of these, in the title or in a message.")],
        limit: Limit = 20,
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Find conversations by what was said in them.

        \b
        Example:
          holdfast sessions search high tide
        """

        async def work(line: Line) -> list[Any]:
            return [item async for item in pages(line.client, path("sessions"), {"query": " ".join(words)}, limit)]

        found = desk.at_server(desk.config(data_dir, config), work)
        if as_json:
            desk.screen.json(found)
            return
        rows = [(each["id"], ago(each["updated_at"]), _hit(each)) for each in found]
        desk.screen.table(("session", "age", "found"), rows)

    @app.command("show")
    def show_session(
        session: Annotated[str, typer.Argument(metavar="SESSION", help="Id of a session.")],
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Read a conversation: the branch that is shown.

        \b
        Example:
          holdfast sessions show ses_01h…
        """

        async def work(line: Line) -> tuple[Any, list[Any]]:
            found = await line.client.call("GET", path("sessions", session))
            return found, await branch(line, session)

        about, messages = desk.at_server(desk.config(data_dir, config), work)
        if as_json:
            desk.screen.json({**about, "messages": messages})
            return
        desk.screen.line(about["title"] or about["id"], "bold underline")
        desk.screen.line()
        for item in messages:
            show.message(desk.screen, item)


async def branch(line: Line, sid: str) -> list[Any]:
    """The shown branch, oldest first. Pages come newest first, each oldest first."""
    found: list[Sequence[Any]] = []
    params: dict[str, str | int] = {"limit": 200}
    while True:
        page = await line.client.call("GET", path("sessions", sid, "messages"), params=params)
        found.append(page["items"])
        if page["next"] is None:
            return [item for items in reversed(found) for item in items]
        params["cursor"] = page["next"]


def _hit(item: dict[str, Any]) -> str:
    excerpt = (item.get("match") or {}).get("excerpt") or ""
    return f"{item['title']}: {excerpt}" if item["title"] and excerpt != item["title"] else excerpt or item["title"]
