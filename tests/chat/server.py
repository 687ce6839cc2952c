"""The real server with its real agents in a process of its own: `python -m tests.chat.server <settings as JSON>`.

It knows only the models that the settings name, and pauses between attempts take no time. The first line out is
`{"url": …}`; when stdin closes, the process goes at once.
"""

import importlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio

from holdfast import app, logs
from holdfast.agents.acp.program import AcpLimits
from holdfast.agents.gateway.client import GatewayLimits
from holdfast.app import lifecycle
from holdfast.app.agents import build_agents
from holdfast.config import Config
from holdfast.core.errors import HoldfastError
from holdfast.models.catalog import CatalogSettings, ModelCatalog
from holdfast.models.openai_client import OpenAIModel
from holdfast.models.request_policy import RequestPolicy, Timeouts
from holdfast.ports.clock import Clock
from holdfast.ports.journal import Append, Journal
from holdfast.ports.model import Model
from holdfast.ports.store import Store
from holdfast.server.event_loop import ServerEventLoop
from tests.fork_server import PATIENT, write_line

for _slow in ("holdfast.agents.acp.connection", "mcp"):  # before the fork, because each takes a second
    importlib.import_module(_slow)


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


class Tuned(ModelCatalog):
    def __init__(self, tuned: Mapping[str, Mapping[str, Any]], settings: CatalogSettings, clock: Clock) -> None:
        policy = RequestPolicy(attempts=3, sleep=_nap)
        super().__init__(replace(settings, ports={}, policy=policy), clock)
        self._tuned = tuned

    def get(self, model_id: str) -> Model:
        model = super().get(model_id)
        if not isinstance(model, OpenAIModel):
            return model
        changes = dict(self._tuned.get(model.name, {}))
        if "timeouts" in changes:
            changes["timeouts"] = Timeouts(**changes["timeouts"])
        return replace(model, policy=replace(model.policy, **changes))


async def _nap(_: float) -> None:
    await anyio.lowlevel.checkpoint()


async def _serve(
    config: Config,
    environment: Mapping[str, str] = {},
    tuned: Mapping[str, Mapping[str, Any]] = {},
    stuck: str | None = None,
    program_limits: Mapping[str, Any] = {},
    gateway_limits: Mapping[str, Any] = {},
    engine: Mapping[str, Any] = {},
) -> None:
    """Beside the configuration: what is found in the environment, changes to models' endpoints by name, the type of
    event that the journal never gets to take, limits of agents' programs and gateways, and the engine's settings."""
    home, sign = config.data_dir / "no-home", config.data_dir / "stuck"
    found = {"PATH": os.environ["PATH"], "HOLDFAST_MODELS_DIR": str(config.data_dir / "no-models"), **environment}
    build = partial(
        build_agents,
        environment=found,
        home=home,
        make_catalog=partial(Tuned, tuned),
        program_limits=AcpLimits(**program_limits),
        gateway_limits=GatewayLimits(**gateway_limits),
    )

    def around(store: Store, journal: Journal) -> tuple[Store, Journal]:
        return store, journal if stuck is None else cast(Journal, Stuck(journal, stuck, sign))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_end_with_the_test)
        app.tune_gc()  # as `holdfast serve` does
        patient = replace(app.engine_settings(config), **{**PATIENT, **engine})
        await lifecycle.serve(config, build, lambda url: write_line({"url": url}), around, patient)
        tasks.cancel_scope.cancel()


async def _end_with_the_test() -> None:
    await anyio.wait_readable(0)
    os._exit(9)


def main(arguments: Sequence[str]) -> int:
    settings = json.loads(arguments[0])
    names = ("environment", "tuned", "stuck", "program_limits", "gateway_limits", "engine")
    more = {name: settings.pop(name) for name in names if name in settings}
    config = Config(**{**settings, "data_dir": Path(settings["data_dir"])})
    logs.configure(config.log_level, config.log_format)
    try:
        anyio.run(partial(_serve, config, **more), backend_options={"loop_factory": ServerEventLoop})
    except HoldfastError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
