"""`holdfast runs`: what was and is being answered, and the journal of each."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import typer

from holdfast.faces.cli import show
from holdfast.faces.cli.client import path
from holdfast.faces.cli.desk import AsJson, ConfigFile, DataDir, Desk
from holdfast.faces.cli.follow import TERMINAL, Event, Follower
from holdfast.faces.cli.paging import pages
from holdfast.faces.cli.reach import Line
from holdfast.faces.cli.screen import ago

RunId = Annotated[str, typer.Argument(metavar="RUN", help="Id of a run.")]
After = Annotated[int, typer.Option(min=0, help="Begin after this event.")]


def add(root: typer.Typer, desk: Desk) -> None:
    app = typer.Typer(help="Runs and their journals.", no_args_is_help=True)
    root.add_typer(app, name="runs")

    @app.command("list")
    def list_runs(
        status: Annotated[str | None, typer.Option(help="Only these, with commas: running,waiting …")] = None,
        session: Annotated[str | None, typer.Option(help="Only of this session.", metavar="ID")] = None,
        limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 20,
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """The newest runs.

        \b
        Example:
          holdfast runs list --status running,waiting
        """
        wanted = {"status": status, "session": session}
        params = {name: value for name, value in wanted.items() if value is not None}

        async def work(line: Line) -> list[Any]:
            return [item async for item in pages(line.client, path("runs"), params, limit)]

        found = desk.at_server(desk.config(data_dir, config), work)
        if as_json:
            desk.screen.json(found)
            return
        rows = [(run["id"], run["status"], ago(run["created_at"]), run["model"] or run["agent"]) for run in found]
        desk.screen.table(("run", "status", "age", "model"), rows)

    @app.command("show")
    def show_run(run: RunId, as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None) -> None:
        """How a run is, or how it ended.

        \b
        Example:
          holdfast runs show run_01h…
        """

        async def work(line: Line) -> Any:
            return await line.client.call("GET", path("runs", run))

        found = desk.at_server(desk.config(data_dir, config), work)
        if as_json:
            desk.screen.json(found)
            return
        for name, value in found.items():
            if value is not None:
                desk.screen.line(f"{name + ':':<18}{show.value(value)}")

    @app.command()
    def replay(
        run: RunId, after: After = 0, as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None
    ) -> None:
        """Print the events of a run from its journal, as far as it goes now.

        \b
        Example:
          holdfast runs replay run_01h… --json
        """
        desk.at_server(desk.config(data_dir, config), _events(desk, run, after, as_json, live=False))

    @app.command()
    def follow(
        run: RunId, after: After = 0, as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None
    ) -> None:
        """Print the events of a run, those to come as well, until it ends.

        \b
        Example:
          holdfast runs follow run_01h… --after 120
        """
        desk.at_server(desk.config(data_dir, config), _events(desk, run, after, as_json, live=True))


def _events(desk: Desk, rid: str, after: int, as_json: bool, *, live: bool) -> Callable[[Line], Awaitable[None]]:
    async def work(line: Line) -> None:
        last = (await line.client.call("GET", path("runs", rid)))["last_seq"]

        def see(event: Event) -> bool:
            if as_json:
                desk.screen.json_line({"seq": event.seq, "event": event.type, "data": event.data})
            else:
                show.event_line(desk.screen, event)
            return event.type in TERMINAL or (not live and event.seq >= last)

        if live or after < last:
            await Follower(line, rid, see, after).run()

    return work
