"""A fake OpenViking server on a real socket, which records what it receives."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from holdfast.memory.openviking import OpenViking


@dataclass
class FakeOpenViking:
    url: str = ""
    pending: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    archived: dict[str, list[list[dict[str, Any]]]] = field(default_factory=dict)
    """Messages of each commit, by session."""
    memories: list[dict[str, Any]] = field(default_factory=list)
    keys: set[str | None] = field(default_factory=set)
    fails: dict[str, int] = field(default_factory=dict)
    """How many more times a call fails, by the last segment of its path."""

    def app(self) -> web.Application:
        app, sessions = web.Application(), "/api/v1/sessions"
        app.router.add_post(sessions, self._make)
        app.router.add_get(sessions, self._list)
        app.router.add_post(f"{sessions}/{{sid}}/messages/batch", self._add)
        app.router.add_post(f"{sessions}/{{sid}}/commit", self._commit)
        app.router.add_delete(f"{sessions}/{{sid}}", self._delete)
        app.router.add_post("/api/v1/search/find", self._find)
        return app

    def _answer(self, request: web.Request, result: Any) -> web.Response:
        self.keys.add(request.headers.get("X-API-Key"))
        return web.json_response({"status": "ok", "result": result})

    def _refused(self, request: web.Request, code: str, status: int) -> web.Response:
        error = {"code": code, "message": f"{code} for {request.path}"}
        return web.json_response({"status": "error", "error": error}, status=status)

    def _fails(self, request: web.Request) -> bool:
        word = request.path.rsplit("/", 1)[-1]
        left = self.fails.get(word, 0)
        self.fails[word] = max(0, left - 1)
        return left > 0

    async def _make(self, request: web.Request) -> web.Response:
        sid = (await request.json())["session_id"]
        if sid in self.pending:
            return self._refused(request, "ALREADY_EXISTS", 409)
        self.pending[sid] = []
        return self._answer(request, {"session_id": sid})

    async def _list(self, request: web.Request) -> web.Response:
        return self._refused(request, "UNAVAILABLE", 503) if self._fails(request) else self._answer(request, [])

    async def _add(self, request: web.Request) -> web.Response:
        messages = (await request.json())["messages"]
        if len(messages) > 100:
            return self._refused(request, "INVALID_ARGUMENT", 400)
        sid = request.match_info["sid"]
        if sid not in self.pending:
            return self._refused(request, "NOT_FOUND", 404)
        self.pending[sid].extend(messages)
        return self._answer(request, {"added": len(messages)})

    async def _commit(self, request: web.Request) -> web.Response:
        sid = request.match_info["sid"]
        if self._fails(request):
            return self._refused(request, "INTERNAL", 500)
        if sid not in self.pending:
            return self._refused(request, "NOT_FOUND", 404)
        self.archived.setdefault(sid, []).append(self.pending[sid])
        self.pending[sid] = []
        return self._answer(request, {"status": "accepted", "task_id": "1"})

    async def _delete(self, request: web.Request) -> web.Response:
        sid = request.match_info["sid"]
        if self.pending.pop(sid, None) is None:
            return self._refused(request, "NOT_FOUND", 404)
        self.archived.pop(sid, None)
        return self._answer(request, {"session_id": sid})

    async def _find(self, request: web.Request) -> web.Response:
        if self._fails(request):
            return web.Response(text="<html>a proxy</html>", status=502, content_type="text/html")
        body = await request.json()
        return self._answer(request, {"memories": self.memories[: body["limit"]], "resources": [], "skills": []})


@asynccontextmanager
async def fake_openviking() -> AsyncIterator[FakeOpenViking]:
    here = FakeOpenViking()
    runner = web.AppRunner(here.app())
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        here.url = f"http://{host}:{port}"
        yield here
    finally:
        await runner.cleanup()


@asynccontextmanager
async def connected(url: str, api_key: str | None = None) -> AsyncIterator[OpenViking]:
    provider = OpenViking(url, api_key)
    try:
        yield provider
    finally:
        await provider.close()
