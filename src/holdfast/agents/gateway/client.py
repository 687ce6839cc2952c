"""HTTP calls to the API of a gateway. All that comes back is bounded in size and time; a redirect is not followed; the
key appears in no message."""

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import quote as quote_path

import anyio
from anyio import to_thread
from anyio.lowlevel import checkpoint
from yarl import URL

from holdfast.core import lenient_json
from holdfast.core.json_limits import LARGE, has_too_many_values
from holdfast.core.parts import Json
from holdfast.core.size_text import MIB
from holdfast.core.sse_parser import EventTooLongError, ServerSentEvent, SseParser
from holdfast.models.http_client import HttpClient
from holdfast.models.http_connection import HttpError, HttpResponse
from holdfast.models.upstream_errors import quote
from holdfast.ports.agent import AgentError

_EVENTS_PER_CHECKPOINT: Final = 100  # One piece of a stream has thousands of small ones
_MAX_STRINGS: Final = 500_000  # In one answer: a message has some twenty
_MAX_STRUCTURE: Final = 4 * MIB  # Bytes of an answer outside of strings


@dataclass(frozen=True, slots=True)
class AgentGateway:
    name: str
    url: str
    api_key: str | None = field(default=None, repr=False)
    answer_within: float | None = 60.0  # Seconds after which the gateway denies an unanswered question by itself

    @property
    def address(self) -> str:
        url = URL(self.url)
        return f"{url.host}:{url.port}"


@dataclass(frozen=True, slots=True)
class GatewayLimits:
    connect: float = 5.0
    request: float = 30.0  # Seconds for a whole call
    messages: float = 60.0  # Seconds to read the messages of a session
    probe: float = 2.0  # Seconds to find out whether the gateway is there
    probe_age: float = 10.0  # Seconds for which the answer to that is used again
    silence: float = 120.0  # Seconds without a byte after which the events are lost; the gateway sends one every 30
    cancel_grace: float = 2.0  # Seconds of a cancelled turn to learn the id of its run, and to read further events
    stop: float = 30.0  # Seconds that an earlier run has to end once it was told to
    max_answer: int = 32 * MIB
    max_event: int = MIB
    max_open_calls: int = 1_000  # Tools that a run has begun and not ended
    max_ignored: int = 10_000  # Events in a row that change nothing


class GatewayAnswer(NamedTuple):
    status: int
    data: Mapping[str, Any]

    @property
    def error(self) -> str:
        """What the gateway says about a failure."""
        error = self.data.get("error")
        text = error.get("message") if isinstance(error, dict) else error
        return text if isinstance(text, str) and text else "no reason was given"


@dataclass(frozen=True, slots=True)
class GatewayClient:
    http: HttpClient
    gateway: AgentGateway
    limits: GatewayLimits

    # ---- calls ----

    async def start_run(self, body: Mapping[str, Any]) -> GatewayAnswer:
        return await self._call("POST", "/v1/runs", body=body)

    async def run_status(self, run_id: str) -> GatewayAnswer:
        return await self._call("GET", "/v1/runs", run_id)

    async def stop_run(self, run_id: str) -> GatewayAnswer:
        return await self._call("POST", "/v1/runs", run_id, "stop", body={})

    async def answer_approval(self, run_id: str, body: Mapping[str, Any], within: float | None = None) -> GatewayAnswer:
        """`within`: seconds, if they are fewer than for other calls."""
        within = min(self.limits.request, within or self.limits.request)
        return await self._call("POST", "/v1/runs", run_id, "approval", body=body, within=within)

    async def messages(self, session_id: str) -> GatewayAnswer:
        within = self.limits.messages
        return await self._call("GET", "/api/sessions", session_id, "messages", within=within)

    async def health(self, within: float) -> GatewayAnswer:
        return await self._call("GET", "/health", within=within)

    async def capabilities(self, within: float) -> GatewayAnswer:
        return await self._call("GET", "/v1/capabilities", within=within)

    async def events(self, run_id: str) -> "GatewayEvents":
        """The events of a run, which the gateway gives to one reader once."""
        try:
            with anyio.fail_after(self.limits.request):
                response = await self._request("GET", ("/v1/runs", run_id, "events"), None, may_repeat=False)
                if response.status != 200:
                    answer = await self._read(response)
                    raise self.refused("show the events of its run", answer)
        except TimeoutError:
            raise self._late(self.limits.request) from None
        if response.content_type != "text/event-stream":
            response.abort()
            raise self.failure(f"sent {response.content_type or 'nothing'} instead of events")
        return GatewayEvents(self, response)

    # ---- failures ----

    def failure(self, what: str, code: str = "agent") -> AgentError:
        words = quote(what, self.gateway.api_key)
        return AgentError(code, f"The gateway of {self.gateway.name} at {self.gateway.address} {words}.")

    def refused(self, what: str, answer: GatewayAnswer) -> AgentError:
        """An error for a status that is no success."""
        name = self.gateway.name
        match answer.status:
            case 401 | 403:
                key = "rejected the API key" if self.gateway.api_key else "needs an API key"
                set_it = f"Set api_key of [agents.{name}] in holdfast.toml to its API_SERVER_KEY"
                return self.failure(f"{key}. {set_it}", "agent-login")
            case 429 | 503:
                return self.failure(f"is busy: {answer.error}. Try again in a minute", "agent-busy")
            case status:
                return self.failure(f"did not {what} (status {status}): {answer.error}")

    def _late(self, within: float) -> AgentError:
        return self.failure(f"did not answer within {within:g} seconds", "agent-timeout")

    # ---- requests ----

    async def _call(
        self, method: str, *path: str, body: Mapping[str, Any] | None = None, within: float | None = None
    ) -> GatewayAnswer:
        within = within or self.limits.request
        try:
            with anyio.fail_after(within):
                return await self._read(await self._request(method, path, body, may_repeat=method == "GET"))
        except TimeoutError:
            raise self._late(within) from None

    async def _request(
        self, method: str, path: tuple[str, ...], body: Mapping[str, Any] | None, *, may_repeat: bool
    ) -> HttpResponse:
        """`may_repeat`: no for what has an effect: a run that is started twice, an answer that would reach the next
        question, the events that the gateway gives out once."""
        base, *names = path
        whole = "/".join([self.gateway.url.rstrip("/") + base, *(quote_path(name, safe="") for name in names)])
        headers = {"Accept": "application/json, text/event-stream", "User-Agent": "holdfast"}
        if self.gateway.api_key:
            headers["Authorization"] = f"Bearer {self.gateway.api_key}"
        content = b""
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = await to_thread.run_sync(_encode, body)
        url = URL(whole, encoded=True)
        try:
            response = await self.http.request(
                method, url, headers, content, connect_timeout=self.limits.connect, may_repeat=may_repeat
            )
        except HttpError as error:
            raise self.failure(f"cannot be reached: {error.error.detail}", "agent-gone") from None
        if 300 <= response.status < 400:
            response.abort()
            raise self.failure("answered with a redirect, which is not followed. Check its url")
        return response

    async def _read(self, response: HttpResponse) -> GatewayAnswer:
        data = bytearray()
        try:
            while piece := await response.read():
                data += piece
                if len(data) > self.limits.max_answer:
                    raise self.failure(f"sent an answer of more than {self.limits.max_answer} bytes")
        except HttpError as error:
            raise self.failure(f"broke off its answer: {error.error.detail}", "agent-gone") from None
        finally:
            response.abort()
        found = await parse(bytes(data))
        if found is None and response.status < 300:
            raise self.failure("sent an answer that is not a JSON object. Check its url")
        return GatewayAnswer(response.status, found or {})


class GatewayEvents:
    """The open stream of a run's events. It is never opened again: what it lost is gone."""

    def __init__(self, client: GatewayClient, response: HttpResponse) -> None:
        self._client = client
        self._response = response
        self._parser = SseParser(client.limits.max_event)
        self._ready: deque[ServerSentEvent] = deque()
        self._given = 0
        self._too_long = False

    async def next(self) -> Mapping[str, Any] | None:
        """The next event; None if the stream ended."""
        while not self._ready:
            if self._too_long:
                raise self._client.failure(f"sent an event of more than {self._client.limits.max_event} bytes")
            try:
                with anyio.fail_after(self._client.limits.silence):
                    piece = await self._response.read()
            except (HttpError, TimeoutError):
                return None
            if not piece:
                return None
            try:
                self._ready.extend(self._parser.feed(piece))
            except EventTooLongError as error:
                self._ready.extend(error.events)
                self._too_long = True
        self._given += 1
        if self._given % _EVENTS_PER_CHECKPOINT == 0:
            await checkpoint()
        event = await parse(self._ready.popleft().data)
        if event is None:
            raise self._client.failure("sent an event that is not a JSON object")
        return event

    def close(self) -> None:
        self._response.abort()


async def parse(data: bytes) -> Mapping[str, Any] | None:
    """The JSON object, or None if it is none, or one of too many values."""
    found = _parse(data) if len(data) <= LARGE else await to_thread.run_sync(_parse_measured, data)
    return found if isinstance(found, dict) else None


def _parse(data: bytes) -> Json:
    try:
        return lenient_json.loads(data)
    except ValueError:
        return None


def _parse_measured(data: bytes) -> Json:
    return None if has_too_many_values(data, _MAX_STRUCTURE, _MAX_STRINGS) else _parse(data)


def _encode(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
