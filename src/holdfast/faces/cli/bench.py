"""`holdfast bench`: what measuring needs. The measurements themselves are `make bench`."""

from functools import partial
from pathlib import Path
from typing import Annotated

import anyio
import typer

from holdfast.engine.seeding import Plan
from holdfast.faces.cli.desk import Desk
from holdfast.faces.cli.exits import CommandError


def add(root: typer.Typer, desk: Desk) -> None:
    app = typer.Typer(help="For measuring.", no_args_is_help=True)
    root.add_typer(app, name="bench")

    @app.callback()
    def group() -> None:
        pass

    @app.command("seed")
    def seed(
        data_dir: Annotated[Path, typer.Option("--data-dir", help="A directory that is not there yet, or empty.")],
        sessions: Annotated[int, typer.Option(help="How many sessions.", min=1, max=10_000_000)] = 1000,
        messages: Annotated[int, typer.Option(help="Messages of each of them.", min=0, max=4000)] = 10,
        longest: Annotated[int, typer.Option(help="One session more, of so many messages.", min=0, max=1_000_000)] = 0,
    ) -> None:
        """Make a data directory of a size, to try things with. The word "harbour" is in one session of a thousand.

        \b
        Example:
          holdfast bench seed --data-dir /tmp/large --sessions 100000 --messages 4
        """
        target = data_dir.expanduser().absolute()
        plan = Plan(sessions, messages, longest)
        with desk.reporting():
            if target.exists() and (not target.is_dir() or any(target.iterdir())):
                raise CommandError(
                    f"{target} is not empty. Sessions made for measuring go into a directory of their own."
                )
            with desk.screen.progress() as bar:
                task = bar.add_task("Sessions", total=plan.total)

                def report(done: int, total: int) -> None:
                    bar.update(task, completed=done, total=total)

                anyio.run(partial(desk.seed, target, plan, report))
        total = sessions * messages + longest
        desk.screen.line(f"{target}: {plan.total:,} sessions, {total:,} messages.")
