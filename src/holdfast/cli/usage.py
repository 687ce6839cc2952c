"""`holdfast usage`: what answers used, by day, model or project, and the state of the budgets. How it is computed:
`engine.usage`."""

from typing import Annotated, Any, Final

import typer

from holdfast.cli.context import AsJson, CliContext, ConfigFile, DataDir
from holdfast.cli.exit_codes import CommandError, ExitCode
from holdfast.cli.server_connection import CommandServerPurpose, ServerConnection, api_path
from holdfast.cli.terminal import Terminal

_GROUPINGS: Final = ("day", "model", "project")
_HEADERS: Final = ("answers", "input", "output", "cost", "time")
_UNITS: Final = {"tokens": "{:,.0f} tokens", "usd": "${:,.2f}"}


def add(root: typer.Typer, context: CliContext) -> None:
    @root.command("usage", epilog="Example: holdfast usage --by model --from 2026-11-01")
    def show_usage(
        by: Annotated[str, typer.Option(help="Group by day, model or project.")] = "day",
        first: Annotated[
            str | None, typer.Option("--from", metavar="DATE", help="First day. Default: 30 days.")
        ] = None,
        last: Annotated[str | None, typer.Option("--to", metavar="DATE", help="Last day. Default: today.")] = None,
        time_zone: Annotated[
            str | None, typer.Option(metavar="ZONE", help="Of the days. Default: that of the budgets, or UTC.")
        ] = None,
        as_csv: Annotated[bool, typer.Option("--csv", help="Output CSV.")] = False,
        as_json: AsJson = False,
        data_dir: DataDir = None,
        config: ConfigFile = None,
    ) -> None:
        """Show tokens, cost and time by day, model or project."""
        named = {"by": by, "from": first, "to": last, "time_zone": time_zone}
        params = {name: value for name, value in named.items() if value is not None}

        async def work(connection: ServerConnection) -> tuple[Any, Any]:
            _check(by)
            client, path = connection.client, api_path("usage")
            if as_csv:
                async with client.stream("GET", path, params={**params, "format": "csv"}) as response:
                    return await response.text(), None
            return await client.call("GET", path, params=params), await client.call("GET", api_path("budgets"))

        purpose = CommandServerPurpose.MODELS  # which knows what the models cost
        usage, budgets = context.with_server(context.config(data_dir, config), work, purpose=purpose)
        if as_csv:
            context.terminal.raw(usage)
        elif as_json:
            context.terminal.json({**usage, "budgets": budgets["items"]})
        else:
            _print(context.terminal, usage, budgets["items"])


def _check(by: str) -> None:
    if by not in _GROUPINGS:
        raise CommandError(f"--by must be one of {', '.join(_GROUPINGS)}; found {by!r}", ExitCode.USAGE)


def _print(terminal: Terminal, usage: Any, budgets: list[Any]) -> None:
    rows = [(item["key"] or "(no project)", *_cells(item)) for item in usage["items"] if item["runs"]]
    if rows and terminal.out.is_terminal:
        rows.append(("total", *_cells(usage["total"])))
    terminal.table((usage["by"], *_HEADERS), rows, f"No answers from {usage['first_day']} to {usage['last_day']}.")
    if usage["total"]["estimated_cost"]:
        terminal.note("~ Estimated from prices, because the provider reports no cost.")
    if tokens := usage["total"]["unpriced_tokens"]:
        terminal.note(f"The cost of {tokens:,} tokens is unknown: set prices in Settings → Usage.")
    for item in budgets:
        terminal.note(_budget_line(item), "yellow" if item["is_reached"] else "dim")


def _cells(item: Any) -> tuple[str, ...]:
    numbers = (f"{item[name]:,}" for name in ("runs", "input_tokens", "output_tokens"))
    return *numbers, _cost(item), _duration(item["seconds"])


def _cost(item: Any) -> str:
    if item["cost"] is None or (not item["cost"] and item["unpriced_tokens"]):
        return ""
    return (
        f"{'~' if item['estimated_cost'] else ''}${item['cost']:,.{2 if item['cost'] >= 1 or not item['cost'] else 4}f}"
    )


def _duration(seconds: float) -> str:
    minutes, hours = int(seconds // 60), int(seconds // 3600)
    return f"{seconds:.0f} s" if minutes < 1 else f"{minutes} min" if hours < 1 else f"{hours} h {minutes % 60} min"


def _budget_line(item: Any) -> str:
    used, limit = (_UNITS[item["unit"]].format(item[name]) for name in ("used", "limit"))
    period = "Today" if item["period"] == "day" else "This month"
    state = (
        "" if not item["is_reached"] else ", new messages are refused" if item["action"] == "refuse" else ", used up"
    )
    return f"{period}: {used} of {limit}{state}"
