"""The small model that runs on this machine, for trying Holdfast without a key. It is not offered any tools."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import anyio

from holdfast.core.parts import Json
from holdfast.models.chunk_assembler import ChunkAssembler
from holdfast.models.iterated_answer import IteratedAnswer
from holdfast.models.local_model_process import LocalModelError, LocalModelProcess, LocalModelSettings
from holdfast.models.local_model_prompt import body, shortened
from holdfast.ports.model import Delta, ModelAnswer, ModelError, ModelInfo, ModelRequest

LOCAL_ID = "local/smollm2-135m"


def local_info(context: int | None, reason: str | None = None) -> ModelInfo:
    return ModelInfo(
        LOCAL_ID, "SmolLM2 135M (on this machine)", "local", context, frozenset({"prefill"}), reason is None, reason
    )


class LocalModel:
    def __init__(self, settings: LocalModelSettings) -> None:
        self.info = local_info(settings.context)
        self.process = LocalModelProcess(settings)
        self._context = settings.context
        self._turn = anyio.Semaphore(1)

    async def aclose(self) -> None:
        await self.process.aclose()

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelAnswer]:
        async with self._turn:
            try:
                first = await self._ask(request)
                yield IteratedAnswer(partial(self._deltas, first))
            finally:
                await self.process.cancel()

    async def _ask(self, request: ModelRequest) -> Json | None:
        """Asks, dropping the oldest turns until the rest fits. Returns the first chunk of the answer."""
        left = shortened(request, None, self._context)
        while left is not None:
            first = await self.process.ask(body(left))
            too_long = _prompt_tokens(first)
            if too_long is None:
                return first
            while await self.process.chunk() is not None:
                pass
            left = shortened(left, too_long, self._context)
        raise ModelError(
            "context-length",
            f"Your message alone exceeds the {self._context} tokens that the local model can read. Shorten it, or "
            "choose another model.",
        )

    async def _deltas(self, chunk: Json | None, answer: IteratedAnswer) -> AsyncIterator[Sequence[Delta]]:
        chunks = ChunkAssembler()
        while chunk is not None:
            chunks.add(chunk)
            if deltas := chunks.take():
                yield deltas
            if chunks.error is not None:
                raise LocalModelError(chunks.error.code, chunks.error.detail)
            chunk = await self.process.chunk()
        if not chunks.end():
            raise LocalModelError("protocol", "it ended without an answer")
        answer.finish_reason = chunks.finish_reason
        if deltas := chunks.take():
            yield deltas


def _prompt_tokens(chunk: Json) -> int | None:
    """The size of a prompt that did not fit; None if it did."""
    error = chunk.get("error") if isinstance(chunk, dict) else None
    if isinstance(error, dict) and error.get("type") == "exceed_context_size_error":
        return int(error.get("n_prompt_tokens", 0))
    return None
