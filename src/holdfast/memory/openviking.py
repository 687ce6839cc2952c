"""OpenViking, a context database, as a provider: turns are added to a session there and committed, what it found is
searched. Only ever a client of it, over HTTP.

Its commit archives at once and extracts in the background. A batch that comes again is told again (at least once): the
session there is named after the batch's own, and what was added and not committed is still there.
"""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final
from urllib.parse import quote

import aiohttp

from holdfast.core.ids import OwnerId, SessionId
from holdfast.core.parts import Json, Part, plain_text
from holdfast.ports import Batch, RememberedTurn

_AT_ONCE: Final = 100
"""Messages of one call."""
_ITEMS: Final = 8
_TEXT: Final = 100_000
_ANSWER: Final = aiohttp.ClientTimeout(total=60.0, sock_connect=5.0)


class OpenVikingFailed(Exception):
    """What it answered, in a sentence."""


class OpenViking:
    """Use as an async context manager, or call `close`. Whom the memories belong to there, its key says."""

    def __init__(self, base_url: str, api_key: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        self._base = base_url.rstrip("/") + "/api/v1"
        self._headers = {**(headers or {}), **({} if api_key is None else {"X-API-Key": api_key})}
        self._session: aiohttp.ClientSession | None = None
        self._open: set[SessionId] = set()
        """Sessions that are known to be there."""

    async def __aenter__(self) -> "OpenViking":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def recall(self, owner: OwnerId, sid: SessionId, query: str) -> Sequence[Mapping[str, Json]]:
        if not query.strip():
            return []
        found = await self._call("POST", "/search/find", {"query": query[:4000], "limit": _ITEMS})
        memories = (found or {}).get("memories") if isinstance(found, dict) else None
        return [item for each in memories or [] if (item := _item(each)) is not None]

    async def commit(self, batch: Batch) -> None:
        sid = batch.session_id
        await self._make(sid)
        messages = [message for turn in batch.turns for message in _messages(turn)]
        path = f"/sessions/{quote(sid, safe='')}"
        for at in range(0, len(messages), _AT_ONCE):
            await self._call("POST", f"{path}/messages/batch", {"messages": messages[at : at + _AT_ONCE]})
        await self._call("POST", f"{path}/commit", {})

    async def forget(self, owner: OwnerId, sid: SessionId) -> None:
        self._open.discard(sid)
        await self._call("DELETE", f"/sessions/{quote(sid, safe='')}", missing_is_fine=True)

    async def release(self, sid: SessionId) -> None:
        self._open.discard(sid)

    async def health(self) -> str | None:
        try:
            await self._call("GET", "/sessions?limit=1")
        except (OpenVikingFailed, aiohttp.ClientError, TimeoutError, OSError) as error:
            return str(error) or type(error).__name__
        return None

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _make(self, sid: SessionId) -> None:
        if sid not in self._open:
            await self._call("POST", "/sessions", {"session_id": sid}, there_is_fine=True)
            self._open.add(sid)

    async def _call(
        self, method: str, path: str, body: Json = None, *, missing_is_fine: bool = False, there_is_fine: bool = False
    ) -> Any:
        if self._session is None:
            self._session = aiohttp.ClientSession(headers=self._headers, timeout=_ANSWER)
        async with self._session.request(method, self._base + path, json=body) as answer:
            fine = (missing_is_fine and answer.status == 404) or (there_is_fine and answer.status == 409)
            try:
                told = await answer.json(content_type=None)
            except ValueError:
                told = None
            if fine:
                return None
            if answer.status >= 400 or not isinstance(told, dict) or told.get("status") == "error":
                raise OpenVikingFailed(f"OpenViking answered {answer.status} to {method} {path}: {_reason(told)}")
            return told.get("result")


def _messages(turn: RememberedTurn) -> list[Json]:
    return [_message("user", turn.user), _message("assistant", turn.assistant)]


def _message(role: str, parts: Sequence[Part]) -> Json:
    return {"role": role, "content": plain_text(parts)[:_TEXT]}


def _item(memory: Any) -> Mapping[str, Json] | None:
    if not isinstance(memory, dict):
        return None
    text = next((memory[name] for name in ("abstract", "overview", "content") if memory.get(name)), None)
    return {"text": str(text), "source": str(memory.get("uri", "openviking"))} if text else None


def _reason(told: Any) -> str:
    error = told.get("error") if isinstance(told, dict) else None
    if isinstance(error, dict):
        return str(error.get("message") or error.get("code") or error)[:200]
    return str(error or "nothing that can be read")[:200]
