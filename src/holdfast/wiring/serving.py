"""A server's life: listen, open the directory, recover, answer; told to stop, drain, end the streams, close."""

import json
import os
import secrets
import signal
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread
from anyio.abc import TaskStatus

from holdfast.agents.table import AgentTable
from holdfast.config import Config, ConfigError
from holdfast.core.errors import NotAllowed
from holdfast.core.ids import SessionId
from holdfast.core.values import replace
from holdfast.engine.engine import Engine
from holdfast.engine.settings import Settings
from holdfast.engine.titles import Titles
from holdfast.faces.cli.desk import Finding
from holdfast.faces.cli.place import Place
from holdfast.faces.cli.reach import SERVER_FILE
from holdfast.faces.http import app, server
from holdfast.faces.http.access import is_loopback
from holdfast.faces.http.api import MIB, Api, Limits
from holdfast.faces.http.gate import Gate
from holdfast.faces.http.stream import Line
from holdfast.faces.openai.face import OpenAIFace
from holdfast.ports import Summariser
from holdfast.storage import disk
from holdfast.storage.sqlite import backup
from holdfast.system import SystemClock
from holdfast.wiring import keeping, warming
from holdfast.wiring.bridge import Bridge
from holdfast.wiring.crew import Crew, Hire
from holdfast.wiring.node import Around, Node, engine_settings


async def serve(
    config: Config,
    hire: Hire,
    ready: Callable[[str], None],
    around: Around = lambda store, journal: (store, journal),
    settings: Settings | None = None,
) -> None:
    """Until SIGTERM or SIGINT: then no new connections, the engine drains, streams end, and everything is closed. A
    second signal cuts the draining short; what is not saved by then, the next start saves from the journal.
    `settings` go before what the config says of the engine."""
    bridge, token = Bridge(), secrets.token_urlsafe(32)
    with _bind(config) as listener, keeping.watched_keys(config) as keys:
        _check_password(config, config.password is not None or keys.read().password is not None)
        async with hire(config, keys, bridge) as crew:
            settings = settings or engine_settings(config)
            node = await keeping.open_node(config, AgentTable(crew.agents), settings, around, crew.memory)
            try:
                bridge.engine = node.engine
                gate = Gate(keys, SystemClock(), token, config.password)
                await _run(node, crew, _api(node, config, crew, gate), listener, config, token, ready)
            finally:
                with anyio.CancelScope(shield=True):
                    await _close(node, crew)


async def _close(node: Node, crew: Crew) -> None:
    if crew.memory is not None:
        await crew.memory.close()
    await node.close()


def _check_password(config: Config, has_password: bool) -> None:
    if not is_loopback(config.host) and not has_password:
        raise ConfigError(
            "host",
            f"{config.host} can be reached by others, and there is no password. Set one with `holdfast password`, or "
            "listen on 127.0.0.1",
        )


def _api(node: Node, config: Config, crew: Crew, gate: Gate) -> Api:
    async def summariser(sid: SessionId) -> Summariser:
        assert crew.summariser is not None
        return await crew.summariser((await node.engine.service.session(sid)).session)

    return Api(
        node.engine,
        gate,
        [(name, agent.can_continue) for name, agent in crew.agents.items()],
        models=crew.models,
        meter=crew.meter,
        summariser=None if crew.summariser is None else summariser,
        limits=Limits(max_file=config.max_file_mb * MIB, line=Line(config.heartbeat, config.write_deadline)),
        workshop=crew.workshop,
        backup=partial(_back_up, node),
    )


async def _back_up(node: Node, path: Path, report: backup.Report) -> Mapping[str, int]:
    """Nothing is erased meanwhile, so what the copied store names is there when it is copied."""
    if node.copy is None:
        raise NotAllowed("make a backup", "the data is in PostgreSQL; use its own tools, as docs/operations.md shows")
    async with node.engine.sweeper.keeping_everything():
        done = await to_thread.run_sync(node.copy, path, report)
    return asdict(done)


async def serve_own(config: Config, hire: Hire, stop: anyio.Event, *, task_status: TaskStatus[Place]) -> None:
    """The same app for one command of this process: on a socket in a directory that only this user can enter."""
    bridge, token = Bridge(), secrets.token_urlsafe(32)
    with keeping.watched_keys(config) as keys, tempfile.TemporaryDirectory(prefix="holdfast-") as directory:
        path = Path(directory) / "socket"
        async with hire(config, keys, bridge) as crew:
            settings = engine_settings(replace(config, drain=0.0))
            node = await keeping.open_node(config, AgentTable(crew.agents), settings, memory=crew.memory)
            try:
                bridge.engine = node.engine
                api = _api(node, config, crew, Gate(keys, SystemClock(), token, config.password))
                async with anyio.create_task_group() as tasks:
                    await tasks.start(node.engine.run)

                    def ready() -> None:
                        task_status.started(Place("http://localhost", token, path))

                    web = server.make(app.build(api, [OpenAIFace()]), graceful=5.0, started=ready, unix=path)
                    tasks.start_soon(_stop_when, stop, node.engine, web)
                    if crew.titler is not None:
                        tasks.start_soon(Titles(node.engine.service, crew.titler).run)
                    await web.serve()
                    node.engine.stop()
            finally:
                with anyio.CancelScope(shield=True):
                    await _close(node, crew)


async def _stop_when(stop: anyio.Event, engine: Engine, web: server.Server) -> None:
    await stop.wait()
    web.should_exit = True
    engine.stop()


def examine(config: Config) -> Sequence[Finding]:
    return [Finding(seen.what, seen.ok, seen.text) for seen in keeping.examine(config)]


async def _run(
    node: Node,
    crew: Crew,
    api: Api,
    listener: socket.socket,
    config: Config,
    token: str,
    ready: Callable[[str], None],
) -> None:
    built = app.build(api, [OpenAIFace()])  # before the engine has its own work to do, which would be in the way
    async with anyio.create_task_group() as tasks:
        await tasks.start(node.engine.run)
        async with _announced(config, listener, token) as url, anyio.create_task_group() as serving:
            web = server.make(built, graceful=config.drain + 5.0, started=lambda: ready(url))
            serving.start_soon(_stop_on_signal, node.engine, web)
            if crew.titler is not None:
                serving.start_soon(Titles(node.engine.service, crew.titler).run)
            serving.start_soon(_warm_up, crew)
            await web.serve([listener])
            serving.cancel_scope.cancel()
        node.engine.stop()  # if it is not stopping already


async def _warm_up(crew: Crew) -> None:
    await warming.warm_up()
    if crew.memory is not None:
        await crew.memory.warm_up()


def _bind(config: Config) -> socket.socket:
    try:
        return server.bind(config.host, config.port)
    except OSError as error:
        raise ConfigError(
            "port",
            f"cannot listen on {config.host}:{config.port}: {os.strerror(error.errno or 0)}. Stop what uses it, or "
            "choose another with --port",
        ) from error


async def _stop_on_signal(engine: Engine, web: server.Server) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        stopping = False
        async for _ in signals:
            if stopping:
                web.force_exit = True
                engine.hurry()
            stopping = True
            web.should_exit = True
            engine.stop()


@asynccontextmanager
async def _announced(config: Config, listener: socket.socket, token: str) -> AsyncIterator[str]:
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    path = config.data_dir / SERVER_FILE
    disk.write_private(path, json.dumps({"url": url, "token": token, "pid": os.getpid()}).encode())
    try:
        yield url
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
