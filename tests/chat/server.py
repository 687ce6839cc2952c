"""The real server with its real crew in a process of its own: `python -m tests.chat.server <settings as JSON>`.

It knows only the models that the settings name, and pauses between attempts take no time. The first line out is
`{"url": …}`; when stdin closes, the process goes at once.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio

from holdfast import logs, wiring
from holdfast.agents.models.catalogue import Catalogue, CatalogueSettings
from holdfast.agents.models.endpoint import Patience
from holdfast.agents.models.openai import OpenAIModel
from holdfast.agents.models.port import Model
from holdfast.agents.models.retry import RetryPolicy
from holdfast.config import Config
from holdfast.core.errors import HoldfastError
from holdfast.ports import Append, Clock, Journal
from holdfast.wiring.crew import Office


@dataclass
class Asked:
    """Beside the fields of `Config`: what is found in the environment, changes to models' endpoints by name, and the
    type of event that the journal never gets to take."""

    config: Config
    environment: Mapping[str, str] = field(default_factory=dict)
    tuned: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    stuck: str | None = None


def read(settings: dict[str, Any]) -> Asked:
    data_dir = Path(settings.pop("data_dir"))
    nowhere = {"PATH": os.environ["PATH"], "HOLDFAST_MODELS_DIR": str(data_dir / "no-models")}
    environment = {**nowhere, **settings.pop("environment", {})}
    tuned, stuck = settings.pop("tuned", {}), settings.pop("stuck", None)
    return Asked(Config(data_dir=data_dir, **settings), environment, tuned, stuck)


class Stuck:
    """A journal that hangs at the first event of a type, and says so with a file: `kill -9` finds it there."""

    def __init__(self, journal: Journal, kind: str, sign: Path) -> None:
        self._journal = journal
        self._kind = kind
        self._sign = sign

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    async def append(self, batch: Sequence[Append]) -> Any:
        if any(entry.type == self._kind for append in batch for entry in append.entries):
            self._sign.touch()
            await anyio.sleep_forever()
        return await self._journal.append(batch)


class Tuned(Catalogue):
    def __init__(self, tuned: Mapping[str, Mapping[str, Any]], settings: CatalogueSettings, clock: Clock) -> None:
        super().__init__(replace(settings, ports={}, retry=RetryPolicy(attempts=3)), clock)
        self._tuned = tuned

    def get(self, model_id: str) -> Model:
        model = super().get(model_id)
        if not isinstance(model, OpenAIModel):
            return model
        changes = dict(self._tuned.get(model.endpoint.model, {}))
        if "patience" in changes:
            changes["patience"] = Patience(**changes["patience"])
        return replace(model, endpoint=replace(model.endpoint, **changes), sleep=_nap)


async def _nap(_: float) -> None:
    await anyio.lowlevel.checkpoint()


async def _serve(asked: Asked) -> None:
    catalogue = partial(Tuned, asked.tuned)
    hire = partial(Office, environment=asked.environment, home=asked.config.data_dir / "no-home", catalogue=catalogue)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_end_with_the_test)
        wiring.tune_gc()  # as `holdfast serve` does
        await wiring.serve(asked.config, hire, _ready, lambda store, journal: (store, _around(asked, journal)))
        tasks.cancel_scope.cancel()


def _around(asked: Asked, journal: Journal) -> Journal:
    sign = asked.config.data_dir / "stuck"
    return journal if asked.stuck is None else cast(Journal, Stuck(journal, asked.stuck, sign))


def _ready(url: str) -> None:
    os.write(1, json.dumps({"url": url}).encode() + b"\n")


async def _end_with_the_test() -> None:
    await anyio.wait_readable(0)
    os._exit(9)


def main(arguments: Sequence[str]) -> int:
    asked = read(json.loads(arguments[0]))
    logs.configure(asked.config.log_level, asked.config.log_format)
    try:
        anyio.run(_serve, asked, backend_options={"use_uvloop": True})
    except HoldfastError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
