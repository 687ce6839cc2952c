"""A server process from start to stop: listen, open storage, recover, serve; then drain, end the streams, close. How
long a stopping node waits for runs: `drain_time` in `engine.settings`; whether a server needs a password:
`server.access_rules.needs_password`.

Everything that can refuse to start is done before the first task group is entered, so that a refusal reaches the
command line as one error and not as a group of them.
"""

import errno
import json
import logging
import os
import secrets
import signal
import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup, TaskStatus
from starlette.types import ASGIApp

from holdfast.app import deferred_imports, storage, tracing
from holdfast.app.agents import AgentServices, BuildAgents
from holdfast.app.engine_proxy import EngineProxy
from holdfast.app.run_changes import SessionHistory
from holdfast.app.session_workspaces import SessionWorkspaces
from holdfast.app.storage import Node, WrapStorage, engine_settings
from holdfast.app.workspace_editor import SessionWorkspaceEditor
from holdfast.config import Config
from holdfast.core.errors import ConfigError, NotAllowedError, StorageError
from holdfast.core.size_text import MIB
from holdfast.engine.engine import Engine
from holdfast.engine.settings import EngineSettings
from holdfast.ports.keyring import DAY, KeyringStore
from holdfast.push.web_push import WebPush
from holdfast.server import app, chat_import, peer_user, uvicorn_server
from holdfast.server.access_rules import needs_password
from holdfast.server.authenticator import Authenticator, record_configured_password, set_first_password
from holdfast.server.connection_limits import raise_file_limit
from holdfast.server.context import ApiContext, ServerLimits
from holdfast.server.event_stream import StreamLimits
from holdfast.server_file import SERVER_FILE, ServerAddress
from holdfast.storage import filesystem
from holdfast.storage.sqlite import backup
from holdfast.system import SystemClock
from holdfast.tools.fetch.file_fetcher import FileFetcher

if TYPE_CHECKING:
    from holdfast.app.open_telemetry import OpenTelemetryExporter

log = logging.getLogger("holdfast.app")

_PASSWORD_LETTERS: Final = "23456789abcdefghjkmnpqrstuvwxyz"  # Without those that look alike


async def serve(
    config: Config,
    build_agents: BuildAgents,
    ready: Callable[[str], None],
    wrap_storage: WrapStorage = lambda store, journal: (store, journal),
    settings: EngineSettings | None = None,
) -> None:
    """Serves until SIGTERM or SIGINT, then drains and closes. A second signal cuts the draining short; the next start
    recovers what was not saved. `settings` replace those derived from the config."""
    with _bind(config) as listener, storage.watched_keys(config) as keys:
        _check_password(config, keys)
        settings = settings or engine_settings(config)
        exporter = tracing.open_exporter(os.environ)
        opened = _open_server(config, keys, build_agents, settings, wrap_storage, exporter)
        async with opened as (node, services, token):
            # Built before the engine starts, whose recovery would compete for the processor.
            await to_thread.run_sync(record_configured_password, keys, _configured_password(config))
            authenticator = _authenticator(config, keys, token)
            http_app = _http_app(config, node, services, authenticator, password_needed=_needs_password(config))
            if exporter is not None:
                http_app = exporter.wrap(http_app)

            async def serve_http(_: TaskGroup) -> None:
                async with _server_file(config, listener, token) as url, anyio.create_task_group() as tasks:
                    address = _page_address(config, keys, url, token)
                    web = uvicorn_server.create_server(
                        http_app,
                        graceful=config.drain + 5.0,
                        started=lambda: ready(address),
                        limits=raise_file_limit(config.write_deadline),
                    )
                    tasks.start_soon(_stop_on_signal, node.engine, web)
                    _start_titles(tasks, node, services)
                    tasks.start_soon(_in_background, "saving when logins were last used", authenticator.run)
                    tasks.start_soon(authenticator.check_passwords, node.engine.wait_for_stop)
                    tasks.start_soon(_in_background, "loading modules in the background", partial(_warm_up, services))
                    await web.serve([listener])
                    tasks.cancel_scope.cancel()

            await _run(node, services, serve_http)


def page_address(config: Config, running: ServerAddress) -> str:
    """What to open in the browser for a server that runs already."""
    with storage.watched_keys(config) as keys:
        return _page_address(config, keys, running.url, running.token)


def _page_address(config: Config, keys: KeyringStore, url: str, token: str) -> str:
    needs_link = not _has_password(config, keys) and not peer_user.can_find_users()
    return f"{url}{config.root_path}/open?token={token}" if needs_link else url + config.root_path


async def serve_command(
    config: Config, build_agents: BuildAgents, stop: anyio.Event, *, task_status: TaskStatus[ServerAddress]
) -> None:
    """Serves the same app to one command of this process, on a socket in a directory that only this user can enter."""
    with storage.watched_keys(config) as keys, tempfile.TemporaryDirectory(prefix="holdfast-") as directory:
        path = Path(directory) / "socket"
        settings = engine_settings(config.model_copy(update={"drain": 0.0}))
        async with _open_server(config, keys, build_agents, settings) as (node, services, token):
            authenticator = _authenticator(config, keys, token)
            http_app = _http_app(config, node, services, authenticator, password_needed=False)

            def started() -> None:
                task_status.started(ServerAddress("http://localhost", token, path))

            async def stop_web(web: uvicorn_server.UvicornServer) -> None:
                await stop.wait()
                web.should_exit = True
                node.engine.stop()

            async def serve_http(_: TaskGroup) -> None:
                web = uvicorn_server.create_server(http_app, graceful=5.0, started=started, unix=path)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(stop_web, web)
                    tasks.start_soon(authenticator.check_passwords, node.engine.wait_for_stop)
                    _start_titles(tasks, node, services)
                    await web.serve()
                    tasks.cancel_scope.cancel()  # titles are generated for as long as the command serves

            await _run(node, services, serve_http)


@asynccontextmanager
async def _open_server(
    config: Config,
    keys: KeyringStore,
    build_agents: BuildAgents,
    settings: EngineSettings,
    wrap_storage: WrapStorage = lambda store, journal: (store, journal),
    exporter: "OpenTelemetryExporter | None" = None,
) -> AsyncIterator[tuple[Node, AgentServices, str]]:
    engine_proxy = EngineProxy()
    services = build_agents(config, keys, engine_proxy)
    push = WebPush(keys, SystemClock(), config.push_contact, config.login_idle_days * DAY, config.push_origins)
    node = await storage.open_node(
        config, services.agents, settings, wrap_storage, services.memory, exporter, services.prices, push
    )
    try:
        engine_proxy.engine = node.engine
        await to_thread.run_sync(chat_import.remove_unfinished, config.data_dir)
        yield node, services, secrets.token_urlsafe(32)
    finally:
        with anyio.CancelScope(shield=True):
            if services.memory is not None:
                await services.memory.close()
            await node.close()
            if exporter is not None:
                await to_thread.run_sync(exporter.close)


async def _run(node: Node, services: AgentServices, serve_http: Callable[[TaskGroup], Awaitable[None]]) -> None:
    """Runs the engine while `serve_http` does, and the connections of agents until the engine has stopped."""
    async with anyio.create_task_group() as connections:
        if services.run is not None:
            await connections.start(services.run)
        async with anyio.create_task_group() as tasks:
            await tasks.start(node.engine.run)
            await serve_http(tasks)
            node.engine.stop()
        connections.cancel_scope.cancel()


def _authenticator(config: Config, keys: KeyringStore, token: str) -> Authenticator:
    return Authenticator(
        keys, SystemClock(), token, _configured_password(config), config.login_idle_days, config.root_path
    )


def _http_app(
    config: Config, node: Node, services: AgentServices, authenticator: Authenticator, *, password_needed: bool
) -> ASGIApp:
    workspaces = SessionWorkspaces(config.data_dir, services.programs, is_cluster=config.store_url is not None)
    context = ApiContext(
        node.engine,
        authenticator,
        [(name, agent.can_resume, agent.can_steer) for name, agent in services.agents.items()],
        models=services.models,
        programs=services.programs,
        workspaces=workspaces,
        workspace_editor=SessionWorkspaceEditor(workspaces, SystemClock().now, EngineSettings().disk_reserve),
        workspace_history=SessionHistory(workspaces, SystemClock().now, EngineSettings().disk_reserve),
        measure_context=services.context_usage,
        summarizer=services.summarizer,
        titler=services.titler,
        limits=ServerLimits(max_file=config.max_file_mb * MIB, streams=StreamLimits(config.heartbeat)),
        data_dir=config.data_dir,
        tool_admin=services.tool_admin,
        backup=partial(_back_up, node),
        confirm_memories=config.memory.confirm,
        fetch_file=FileFetcher().fetch if config.fetch_urls else None,
        cors_origins=config.cors_origins,
        password_needed=password_needed,
        root_path=config.root_path,
        trusted_proxies=tuple(ip_network(proxy) for proxy in config.trusted_proxies),
    )
    return app.build(context)


async def _back_up(node: Node, path: Path, report: backup.Report) -> Mapping[str, int]:
    """Pauses erasure, so that everything the copied store refers to still exists when it is copied."""
    if node.copy is None:
        raise NotAllowedError(
            "make a backup", "the data is in PostgreSQL; back it up there, see docs/how-to/cluster.md"
        )
    async with node.engine.retention.erasing:
        done = await to_thread.run_sync(node.copy, path, report)
    return asdict(done)


# ---- before serving ----


def _bind(config: Config) -> socket.socket:
    try:
        return uvicorn_server.bind(config.host, config.port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            problem = f"{config.port} is already in use. Stop the other program, or use another port with --port."
            raise ConfigError("port", problem) from error
        reason = f"cannot listen on {config.host}:{config.port} ({error.strerror})"
        raise ConfigError("host", f"{reason}; choose an address of this machine with --host") from error


def create_first_password(config: Config) -> str | None:
    """With `require_password`, sets a random password if none is set. Returns it, to be shown once: it is stored as a
    hash. In a cluster, one node creates it."""
    if not config.require_password or config.password is not None:
        return None
    with storage.watched_keys(config) as keys:
        if keys.read().password is not None:
            return None
        password = "-".join("".join(secrets.choice(_PASSWORD_LETTERS) for _ in range(5)) for _ in range(4))
        return password if set_first_password(keys, password) else None


def _needs_password(config: Config) -> bool:
    return needs_password(config.host, required=config.require_password)


def _check_password(config: Config, keys: KeyringStore) -> None:
    """Raises ConfigError if other machines can reach the address and no password is set. On loopback a server whose
    configuration requires a password starts without one, and refuses every request (`decide_access`)."""
    if needs_password(config.host) and not _has_password(config, keys):
        raise ConfigError(
            "host",
            f"{config.host} is reachable from other machines, but no password is set. Set one with "
            "`holdfast password`, or listen on 127.0.0.1",
        )


def _configured_password(config: Config) -> str | None:
    return None if config.password is None else config.password.get_secret_value()


def _has_password(config: Config, keys: KeyringStore) -> bool:
    return config.password is not None or keys.read().password is not None


@asynccontextmanager
async def _server_file(config: Config, listener: socket.socket, token: str) -> AsyncIterator[str]:
    """Tells commands on this machine, in `server.json`, how to reach the server. Yields its URL."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    path = config.data_dir / SERVER_FILE
    try:
        filesystem.write_private(path, json.dumps({"url": url, "token": token, "pid": os.getpid()}).encode())
    except OSError as error:
        raise StorageError(f"Cannot write {path}: {error.strerror}. Free some space or fix the permissions.") from error
    try:
        yield url
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)


# ---- while serving ----


def _start_titles(tasks: TaskGroup, node: Node, services: AgentServices) -> None:
    if services.titler is not None:
        tasks.start_soon(_in_background, "generating titles", partial(node.engine.titles.run, services.titler))


async def _in_background(what: str, work: Callable[[], Awaitable[None]]) -> None:
    """Work that the server can do without: a failure is logged and ends nothing else."""
    try:
        await work()
    except Exception:
        log.exception("%s failed; the server continues without it", what)


async def _warm_up(services: AgentServices) -> None:
    await deferred_imports.warm_up()
    if services.memory is not None:
        await services.memory.warm_up()


async def _stop_on_signal(engine: Engine, web: uvicorn_server.UvicornServer) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        stopping = False
        async for _ in signals:
            if stopping:
                web.force_exit = True
                engine.stop_now()
            stopping = True
            web.should_exit = True
            engine.stop()
