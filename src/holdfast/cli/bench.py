"""`holdfast bench`: data for benchmarks. `make bench` runs the benchmarks."""

from functools import partial
from pathlib import Path
from typing import Annotated

import anyio
import typer

from holdfast.cli.context import CliContext
from holdfast.cli.exit_codes import CommandError


def add(root: typer.Typer, context: CliContext) -> None:
    app = typer.Typer(help="Prepare benchmarks.", no_args_is_help=True, callback=lambda: None)
    root.add_typer(app, name="bench")

    @app.command("seed", epilog="Example: holdfast bench seed --data-dir /tmp/large --sessions 100000 --messages 4")
    def seed(
        data_dir: Annotated[Path, typer.Option("--data-dir", metavar="DIR", help="A new or empty directory.")],
        sessions: Annotated[int, typer.Option(metavar="N", help="Number of sessions.", min=1, max=10_000_000)] = 1000,
        messages: Annotated[int, typer.Option(metavar="N", help="Messages per session.", min=0, max=4000)] = 10,
        longest: Annotated[
            int, typer.Option(metavar="N", help="Messages in one extra session.", min=0, max=1_000_000)
        ] = 0,
    ) -> None:
        """Create a data directory with generated sessions. One session in a thousand contains the word "harbour"."""
        from holdfast.bench_data.seed import Plan, seed_directory

        target = data_dir.expanduser().absolute()
        plan = Plan(sessions, messages, longest)
        with context.report_errors():
            if target.exists() and (not target.is_dir() or any(target.iterdir())):
                raise CommandError(f"{target} is not empty. Choose a new directory.")
            with context.terminal.progress() as report:
                anyio.run(seed_directory, target, plan, partial(report, "Sessions"))
        total = sessions * messages + longest
        context.terminal.line(f"Created {plan.total:,} sessions with {total:,} messages in {target}.")
