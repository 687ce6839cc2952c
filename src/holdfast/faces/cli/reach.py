"""The way to the data: through the server that has the directory, or through one of our own where there is none.

The second is the same app on a Unix socket in a private directory, in this process, for as long as the command takes:
one implementation of every command, and nobody else can come in. The directory's lock decides which it is.
"""

from collections.abc import Awaitable, Callable
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import anyio
from anyio.abc import TaskStatus

from holdfast.config import Config
from holdfast.core.errors import DataDirInUse
from holdfast.faces.cli import place as places
from holdfast.faces.cli.exits import CommandError, Exit, Lost, Refused
from holdfast.faces.cli.place import Place

if TYPE_CHECKING:
    from holdfast.faces.cli.client import Client

T = TypeVar("T")

SERVER_FILE: Final = "server.json"
"""Where commands on this machine find the running server: address and token, for its owner's eyes alone."""
PATIENCE: Final = 120.0
"""Seconds for which a server that was there and is gone is waited for."""
_PAUSES: Final = (0.1, 0.2, 0.4, 0.8, 1.5)


class Needs(Enum):
    """What a server of our own is for. One that only looks executes nothing: what is queued or waits for a person stays
    so, for a server that has the time."""

    DATA = "data"
    MODELS = "models"
    RUNS = "runs"


class OwnServer(Protocol):
    async def __call__(
        self, config: Config, needs: Needs, stop: anyio.Event, *, task_status: TaskStatus[Place]
    ) -> None:
        """Serve in this process until `stop`. DataDirInUse: somebody else has the directory."""


class Line:
    """A client that finds its server again after a restart, at whatever address that has then."""

    def __init__(self, client: "Client", file: Path, note: Callable[[str], None]) -> None:
        self.client = client
        self._file = file
        self._note = note

    async def found_again(self, why: Lost) -> None:
        """Return when a server answers. Lost: it did not within the patience."""
        if self.client.place.socket is not None:
            raise why  # our own does not go away
        if await _answers(self.client):
            self._note("The connection broke; going on.")
            return
        self._note("The server is gone. Waiting for it …")
        with anyio.move_on_after(PATIENCE):
            for attempt in range(10_000):
                place = places.written(self._file)
                if place is not None:
                    self.client.place = place
                    if await _answers(self.client):
                        self._note("The server is back; going on.")
                        return
                await anyio.sleep(_PAUSES[min(attempt, len(_PAUSES) - 1)])
        raise Lost(f"{why} It did not come back within {PATIENCE:g} seconds.")


async def _answers(client: "Client") -> bool:
    """Ready, and not only there: while it starts or stops, calls would be refused."""
    with anyio.move_on_after(5.0):
        try:
            await client.call("GET", "/readyz")
        except (Lost, Refused):
            return False
        return True
    return False


async def reach(
    config: Config,
    own: OwnServer,
    work: Callable[[Line], Awaitable[T]],
    note: Callable[[str], None],
    *,
    makes: bool = False,
    needs: Needs = Needs.DATA,
) -> T:
    """Do the work. `makes`: an empty directory is a beginning and not a mistake."""
    file = config.data_dir / SERVER_FILE
    place = places.written(file)
    if place is not None:
        async with _client(place) as client:
            if await _is_there(client):
                return await work(Line(client, file, note))
    if not makes and not config.has_begun:
        raise CommandError(f"There is nothing in {config.data_dir} yet. Say where with --data-dir, or begin to chat.")
    return await _in_this_process(config, own, needs, work, note)


def _client(place: Place) -> "Client":
    """Imported here: `serve` has this module too, and its start need not wait for an HTTP client."""
    from holdfast.faces.cli.client import Client

    return Client(place)


async def _is_there(client: "Client") -> bool:
    """A server that stops or starts is one, too; whatever took its port after a crash is none."""
    try:
        answer = await client.call("GET", "/healthz")
    except Lost:
        return False
    except Refused:
        return False
    return isinstance(answer, dict) and answer.get("status") == "ok"


async def _in_this_process(
    config: Config, own: OwnServer, needs: Needs, work: Callable[[Line], Awaitable[T]], note: Callable[[str], None]
) -> T:
    results: list[T] = []
    problems: list[Exception] = []
    stop = anyio.Event()

    async def all_of_it() -> None:
        async with anyio.create_task_group() as tasks:
            place = await tasks.start(own, config, needs, stop)
            try:
                async with _client(place) as client:
                    results.append(await work(Line(client, config.data_dir / SERVER_FILE, note)))
            except Exception as error:  # noqa: BLE001  raised again below, outside the group, as what it is
                problems.append(error)
            stop.set()

    try:
        await all_of_it()
    except ExceptionGroup as group:
        problems.insert(0, _first(group))
    if problems:
        raise problems[0]
    return results[0]


def _first(group: Exception) -> Exception:
    """What the server of our own could not start or go on for."""
    while isinstance(group, ExceptionGroup):
        group = group.exceptions[0]
    if isinstance(group, DataDirInUse):
        text = f"{group} No server answers there: it may be starting or stopping; try again in a moment."
        return CommandError(text, Exit.IN_USE)
    return group
