"""The small model that runs on this machine, for trying things without a key. It chats; it is no agent: tools are not
offered to it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType

import anyio

from holdfast.agents.models.chunks import Assembler
from holdfast.agents.models.failures import Trouble
from holdfast.agents.models.local_process import Gone, LocalProcess, LocalSettings
from holdfast.agents.models.local_wire import body, shortened
from holdfast.agents.models.port import Answer, Delta, ModelFailed, ModelInfo, Request, Take, ToolCall
from holdfast.core.parts import Json

LOCAL_ID = "local/smollm2-135m"


def local_info(context: int | None, reason: str | None = None) -> ModelInfo:
    return ModelInfo(
        LOCAL_ID, "SmolLM2 135M (on this machine)", "local", context, frozenset({"prefill"}), reason is None, reason
    )


class LocalModel:
    def __init__(self, settings: LocalSettings) -> None:
        self.info = local_info(settings.context)
        self.settings = settings
        self.process = LocalProcess(settings)
        self.turn = anyio.Semaphore(1)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Answer]:
        return _LocalAnswer(self, request)

    async def aclose(self) -> None:
        await self.process.aclose()


class _LocalAnswer:
    def __init__(self, model: LocalModel, request: Request) -> None:
        self._model = model
        self._request = request
        self._chunks = Assembler()
        self._number: int | None = None
        self._first: Json | None = None
        self._over = False

    @property
    def calls(self) -> Sequence[ToolCall]:
        return ()

    @property
    def finish_reason(self) -> str | None:
        return self._chunks.finish_reason

    async def __aenter__(self) -> "_LocalAnswer":
        await self._model.turn.acquire()
        try:
            await self._ask()
        except BaseException:
            await self._leave()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._leave()

    async def follow(self, take: Take) -> None:
        pass

    def __aiter__(self) -> AsyncIterator[Sequence[Delta]]:
        return self

    async def __anext__(self) -> Sequence[Delta]:
        while not self._over:
            chunk, self._first = self._first, None
            if chunk is None:
                chunk = await self._next()
            if chunk is None:
                self._over = True
                if not self._chunks.end():
                    raise _failed(Trouble("protocol", "it ended without a word"))
            else:
                self._chunks.add(chunk)
            if deltas := self._chunks.take():
                return deltas
            if self._chunks.trouble is not None:
                raise _failed(self._chunks.trouble)
        raise StopAsyncIteration

    async def _ask(self) -> None:
        """Ask, with fewer and fewer of the oldest turns until the rest fits."""
        context = self._model.settings.context
        request: Request | None = shortened(self._request, None, context)
        while request is not None:
            try:
                self._first = await self._begin(body(request))
            except Gone as error:
                raise _gone(error) from None
            too_long = _prompt_tokens(self._first)
            if too_long is None:
                return
            while await self._next() is not None:
                pass
            request = shortened(request, too_long, context)
        raise ModelFailed(
            "context-length",
            f"The question alone is longer than the {context} tokens that the local model can read. Shorten it, or "
            "choose another model.",
        )

    async def _begin(self, asked: Mapping[str, Json]) -> Json | None:
        """The first chunk. A process that was there already may have ended since, so another is tried once."""
        process = self._model.process
        fresh = process.pid is None
        try:
            self._number = await process.ask(asked)
            return await process.chunk(self._number)
        except Gone:
            self._number = None
            if fresh:
                raise
        self._number = await process.ask(asked)
        return await process.chunk(self._number)

    async def _next(self) -> Json | None:
        if self._number is None:
            return None
        try:
            chunk = await self._model.process.chunk(self._number)
        except Gone as error:
            self._number = None
            raise _gone(error) from None
        if chunk is None:
            self._number = None
        return chunk

    async def _leave(self) -> None:
        number, self._number = self._number, None
        try:
            if number is not None:
                await self._model.process.cancel(number)
        finally:
            self._model.turn.release()


def _prompt_tokens(chunk: Json) -> int | None:
    """The size of a prompt that did not fit."""
    error = chunk.get("error") if isinstance(chunk, dict) else None
    if isinstance(error, dict) and error.get("type") == "exceed_context_size_error":
        return int(error.get("n_prompt_tokens", 0))
    return None


def _gone(error: Gone) -> ModelFailed:
    return _failed(Trouble("unavailable", str(error)))


def _failed(trouble: Trouble) -> ModelFailed:
    return ModelFailed(
        trouble.code, f"The local model could not answer ({trouble.detail}). Try again, or choose another model."
    )
