"""`holdfast runs`: lists runs and prints their journals. What they contain: `core.events`."""

import json
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli import rendering
from holdfast.cli.context import AsJson, CliContext, ConfigFile, DataDir, Limit
from holdfast.cli.exit_codes import ServerRefusedError
from holdfast.cli.run_follower import FollowedEvent, follow_run
from holdfast.cli.server_connection import ServerConnection, api_path
from holdfast.cli.terminal import format_age
from holdfast.core.events import TERMINAL_TYPES

if TYPE_CHECKING:
    from holdfast.config import Config

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="Run ID.")]
After = Annotated[int, typer.Option(metavar="N", min=0, help="Skip the events up to number N.")]


def add(root: typer.Typer, context: CliContext) -> None:
    app = typer.Typer(help="Inspect runs and their journals.", no_args_is_help=True)
    root.add_typer(app, name="runs")

    @app.command("list", epilog="Example: holdfast runs list --status running,waiting")
    def list_runs(
        status: Annotated[
            str | None, typer.Option(metavar="STATUS", help="Only runs with one of these, such as running,waiting.")
        ] = None,
        session: Annotated[str | None, typer.Option(help="Only runs of this session.", metavar="ID")] = None,
        limit: Limit = 20,
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """List runs, newest first."""
        params = {name: value for name, value in (("status", status), ("session", session)) if value is not None}
        found, titles = context.with_server(context.config(data_dir, config), partial(_list, params, limit, as_json))
        context.terminal.items(
            found,
            as_json,
            ("run", "status", "age", "model", "chat"),
            lambda run: (
                run["id"],
                run["status"],
                format_age(run["created_at"]),
                run["model"] or run["agent"],
                titles.get(run["session_id"]) or "(untitled)",
            ),
            "No runs.",
        )

    @app.command("show", epilog="Example: holdfast runs show run_01h…")
    def show_run(
        run: RunArgument, as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None
    ) -> None:
        """Show the details of a run."""
        found = context.call_api(context.config(data_dir, config), "GET", "runs", run)
        if as_json:
            context.terminal.json(found)
            return
        for name, value in found.items():
            if value is not None:
                context.terminal.line(f"{name + ':':<18}{rendering.format_value(value)}")

    @app.command(epilog="Example: holdfast runs replay run_01h… --json")
    def replay(
        run: RunArgument, after: After = 0, as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None
    ) -> None:
        """Print the events in a run's journal, without waiting for more."""
        _print_events(context, context.config(data_dir, config), run, after, as_json, follow=False)

    @app.command(epilog="Example: holdfast runs follow run_01h… --after 120")
    def follow(
        run: RunArgument, after: After = 0, as_json: AsJson = False, data_dir: DataDir = None, config: ConfigFile = None
    ) -> None:
        """Print a run's events as they happen, until it ends."""
        _print_events(context, context.config(data_dir, config), run, after, as_json, follow=True)


async def _list(
    params: Mapping[str, str], limit: int, as_json: bool, connection: ServerConnection
) -> tuple[list[Any], dict[str, str | None]]:
    """Runs, and for people the titles of their sessions."""
    client = connection.client
    runs = [run async for page in client.pages(api_path("runs"), params, limit) for run in page]
    titles: dict[str, str | None] = {}
    for sid in () if as_json else dict.fromkeys(run["session_id"] for run in runs):
        try:
            titles[sid] = (await client.call("GET", api_path("sessions", sid)))["title"]
        except ServerRefusedError:
            titles[sid] = "(deleted)"
    return runs, titles


def _print_events(context: CliContext, config: "Config", rid: str, after: int, as_json: bool, *, follow: bool) -> None:
    async def work(connection: ServerConnection) -> None:
        last = (await connection.client.call("GET", api_path("runs", rid)))["last_seq"]

        def print_event(event: FollowedEvent) -> bool:
            if as_json:
                line = {"seq": event.seq, "event": event.type, "data": event.data}
                context.terminal.raw(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
            else:
                rendering.print_event(context.terminal, event)
            return event.type in TERMINAL_TYPES or (not follow and event.seq >= last)

        if follow or after < last:
            await follow_run(connection, rid, print_event, after)

    context.with_server(config, work)
