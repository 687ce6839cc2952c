"""What every command is given: settings, the screen, and the functions that only the composition root can make."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import anyio
import typer

from holdfast import config as configuration
from holdfast.config import Config
from holdfast.core.errors import HoldfastError
from holdfast.core.values import dataclass
from holdfast.engine.seeding import Plan, Report
from holdfast.faces.cli.exits import Exit, code_of
from holdfast.faces.cli.reach import Line, Needs, OwnServer, reach
from holdfast.faces.cli.screen import Screen
from holdfast.ports import Clock, Keys

T = TypeVar("T")

DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Where everything is kept.", metavar="DIR")]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="A holdfast.toml to read.", metavar="FILE")]
AsJson = Annotated[bool, typer.Option("--json", help="For programs: JSON, and nothing else.")]


@dataclass(frozen=True, slots=True)
class Finding:
    """What `doctor` saw. Not `ok`: a person should look at it."""

    what: str
    ok: bool
    text: str


@dataclass(frozen=True, slots=True)
class Desk:
    serve: Callable[[Config, Callable[[str], None]], Awaitable[None]]
    own: OwnServer
    keys: Callable[[Config], Keys]
    examine: Callable[[Config], Sequence[Finding]]
    pull: Callable[[Callable[[int, int], None]], Path]
    """Fetch the small model; it is told how many bytes are there, and of how many."""
    move: Callable[[Config, Callable[[str, int, int], None]], Awaitable[Mapping[str, int]]]
    """Take an embedded data directory to where nodes share it; it is told what is done, and of how much."""
    seed: Callable[[Path, Plan, Report], Awaitable[None]]
    """Fill a new data directory; it is told how far it is."""
    clock: Clock
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    screen: Screen = field(default_factory=Screen)

    def config(self, data_dir: Path | None, file: Path | None = None, **flags: Any) -> Config:
        flags["data_dir"] = None if data_dir is None else data_dir.expanduser()
        with self.reporting():
            return configuration.load(flags, self.environ, home=Path.home(), working=Path.cwd(), file=file)

    def reporting(self) -> "Reporting":
        """Whatever goes wrong inside is said in one line and becomes the exit code."""
        return Reporting(self.screen)

    def at_server(
        self,
        config: Config,
        work: Callable[[Line], Awaitable[T]],
        *,
        makes: bool = False,
        needs: Needs = Needs.DATA,
    ) -> T:
        """Do the work through the server that has the directory, or one of our own."""
        with self.reporting():
            return anyio.run(partial(reach, config, self.own, work, self.screen.note, makes=makes, needs=needs))
        raise AssertionError  # reporting lets nothing pass


class Reporting:
    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        match error:
            case HoldfastError():
                self._screen.error(str(error))
                raise typer.Exit(code_of(error))
            case KeyboardInterrupt():
                raise typer.Exit(Exit.INTERRUPTED)
            case BrokenPipeError():
                # Whoever read our output has had enough. Python must not find out again at its end.
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                raise typer.Exit(Exit.OK)
            case _:
                pass
