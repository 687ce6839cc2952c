"""A memory provider that uses OpenViking, a context database, over HTTP: it adds the user's words to a session there,
commits them, and searches the memories that OpenViking extracted in the background. A repeated batch is sent again (at
least once) to the same session."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

import aiohttp

from holdfast.core.ids import OwnerId, SessionId
from holdfast.core.memory_scope import project_of_owner
from holdfast.core.parts import Json, plain_text
from holdfast.ports.memory import MemoryBatch

_BATCH_SIZE: Final = 100  # Messages per call
_MAX_MEMORIES: Final = 8
_MAX_TEXT: Final = 100_000
_TIMEOUT: Final = aiohttp.ClientTimeout(total=60.0, sock_connect=5.0)


class OpenVikingError(Exception):
    """OpenViking refused a call or failed."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class OpenViking:
    """The API key determines whose memories are used. There is one memory for all chats, so a project's own memory
    stays empty: nothing of its chats is sent."""

    def __init__(self, base_url: str, api_key: str | None = None) -> None:
        self._base = base_url.rstrip("/") + "/api/v1"
        self._headers = {} if api_key is None else {"X-API-Key": api_key}
        self._session: aiohttp.ClientSession | None = None
        self._known: set[SessionId] = set()  # Sessions that exist there, as far as is known

    async def recall(self, owner: OwnerId, sid: SessionId, query: str) -> Sequence[Mapping[str, Json]]:
        if not query.strip() or project_of_owner(owner) is not None:
            return []
        found = await self._call("POST", "/search/find", {"query": query[:4000], "limit": _MAX_MEMORIES})
        memories = (found or {}).get("memories") if isinstance(found, dict) else None
        return [item for each in memories or [] if (item := _item(each)) is not None]

    async def commit(self, batch: MemoryBatch) -> None:
        """A session that was lost there is made again."""
        if project_of_owner(batch.owner) is not None:
            return
        sid = batch.session_id
        was_known = sid in self._known
        try:
            await self._commit(batch)
        except OpenVikingError as error:
            self._known.discard(sid)
            if error.status != HTTPStatus.NOT_FOUND or not was_known:
                raise
            await self._commit(batch)

    async def _commit(self, batch: MemoryBatch) -> None:
        sid = batch.session_id
        if sid not in self._known:
            await self._call("POST", "/sessions", {"session_id": sid}, allow=409)  # it may exist
            self._known.add(sid)
        # OpenViking extracts memories from whatever it is sent, and answers may repeat what others wrote.
        messages = [{"role": "user", "content": plain_text(turn.user)[:_MAX_TEXT]} for turn in batch.turns]
        path = f"/sessions/{quote(sid, safe='')}"
        for at in range(0, len(messages), _BATCH_SIZE):
            await self._call("POST", f"{path}/messages/batch", {"messages": messages[at : at + _BATCH_SIZE]})
        await self._call("POST", f"{path}/commit", {})

    async def forget(self, owner: OwnerId, sid: SessionId) -> None:
        if project_of_owner(owner) is not None:
            return
        self._known.discard(sid)
        await self._call("DELETE", f"/sessions/{quote(sid, safe='')}", allow=404)

    async def release(self, sid: SessionId) -> None:
        self._known.discard(sid)

    async def health(self) -> str | None:
        try:
            await self._call("GET", "/sessions?limit=1")
        except (OpenVikingError, aiohttp.ClientError, TimeoutError, OSError) as error:
            return str(error) or type(error).__name__
        return None

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _call(self, method: str, path: str, body: Json = None, *, allow: int | None = None) -> Any:
        """Returns the result, or None if the response has the status `allow`, which is not an error here."""
        if self._session is None:
            self._session = aiohttp.ClientSession(headers=self._headers, timeout=_TIMEOUT)
        async with self._session.request(method, self._base + path, json=body) as response:
            try:
                content = await response.json(content_type=None)
            except ValueError:
                content = None
            if response.status == allow:
                return None
            if response.status >= 400 or not isinstance(content, dict) or content.get("status") == "error":
                reason = _reason(content)
                text = f"OpenViking answered {response.status} to {method} {path}: {reason}"
                raise OpenVikingError(response.status, text)
            return content.get("result")


def _item(memory: Any) -> Mapping[str, Json] | None:
    if not isinstance(memory, dict):
        return None
    text = next((memory[name] for name in ("abstract", "overview", "content") if memory.get(name)), None)
    return {"text": str(text), "source": str(memory.get("uri", "openviking"))} if text else None


def _reason(content: Any) -> str:
    error = content.get("error") if isinstance(content, dict) else None
    if isinstance(error, dict):
        return str(error.get("message") or error.get("code") or error)[:200]
    return str(error or "the response is not valid JSON")[:200]
