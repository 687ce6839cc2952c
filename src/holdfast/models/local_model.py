"""The small model that runs on this machine, for trying Holdfast without a key, and the parent's side of the process
that computes its answers, which exits after `idle` seconds without a question. It is not offered any tools."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from holdfast.core.parts import Json
from holdfast.models.chunk_assembler import ChunkAssembler
from holdfast.models.iterated_answer import IteratedAnswer
from holdfast.models.local_model_prompt import SETTINGS, body, shortened
from holdfast.ports.model import Delta, ModelAnswer, ModelError, ModelInfo, ModelRequest

LOCAL_ID = "local/smollm2-135m"
_MAX_LINE = 4 * 1024 * 1024
_TIMEOUT = 120.0  # Seconds within which a batch of the prompt or a token must be computed
_START_TIMEOUT = 60.0


class LocalModelError(ModelError):
    def __init__(self, code: str, why: str) -> None:
        super().__init__(code, f"The local model could not answer ({why}). Try again, or choose another model.")


@dataclass(frozen=True, slots=True)
class LocalModelSettings:
    weights: Path
    context: int = 4096  # Tokens of prompt and answer together; each costs 23 kB
    threads: int = 1
    idle: float = 900.0  # Seconds without a question after which the process exits to free its memory
    environment: Mapping[str, str] | None = None
    """The environment of the process; None: the same as this one. A shell command could read it there."""
    command: tuple[str, ...] = (sys.executable, "-m", "holdfast.models.local_model_worker")

    def arguments(self) -> str:
        return json.dumps(
            {"path": str(self.weights), "context": self.context, "threads": self.threads, "idle": self.idle}
        )


def local_info(context: int | None, reason: str | None = None) -> ModelInfo:
    return ModelInfo(
        LOCAL_ID,
        "SmolLM2 135M (on this machine)",
        "local",
        context,
        frozenset({"prefill"}),
        reason is None,
        reason,
        SETTINGS,
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


class LocalModelProcess:
    """Started when first needed. Not safe for two readers: `LocalModel` asks one question at a time."""

    def __init__(self, settings: LocalModelSettings) -> None:
        self._settings = settings
        self._process: Process | None = None
        self._lines: BufferedByteReceiveStream | None = None
        self._last = 0
        self._answering = False

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def ask(self, body: Mapping[str, Json]) -> Json | None:
        """Sends a question and returns the first chunk of its answer. Starts the process if there is none. One that
        turns out to have exited is replaced once."""
        for fresh in (self._process is None, True):
            process = await self._ensure_started()
            self._last += 1
            self._answering = True
            try:
                await self._send(process, {"id": self._last, "ask": body})
                return await self.chunk()
            except LocalModelError:
                if fresh:
                    raise
        raise AssertionError

    async def chunk(self) -> Json | None:
        """The next chunk of the answer, None after the last. Chunks of earlier answers are skipped."""
        while True:
            message = await self._line(_TIMEOUT)
            if message.get("id") == self._last:
                self._answering = not message.get("done")
                return message.get("chunk")

    async def cancel(self) -> None:
        """Stops computing an answer that has not ended, after the current token or batch."""
        answering, self._answering = self._answering, False
        if self._process is not None and answering:
            with anyio.move_on_after(1, shield=True), suppress(LocalModelError):
                await self._send(self._process, {"cancel": self._last})

    async def aclose(self) -> None:
        """Kills the process."""
        process, self._process = self._process, None
        if process is not None:
            with anyio.CancelScope(shield=True):
                if process.returncode is None:
                    process.kill()
                await process.aclose()

    # ---- the process ----

    async def _ensure_started(self) -> Process:
        if self._process is not None and self._process.returncode is None:
            return self._process
        await self.aclose()
        with anyio.CancelScope(shield=True):  # a cancellation during the start would leave the process running
            process = self._process = await anyio.open_process(
                [*self._settings.command, self._settings.arguments()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=self._settings.environment,
                start_new_session=True,  # Ctrl-C goes to the server only, which then ends this process
            )
        assert process.stdout is not None
        self._lines = BufferedByteReceiveStream(process.stdout)
        try:
            first = await self._line(_START_TIMEOUT)
            if not first.get("ready"):
                raise LocalModelError("unavailable", str(first.get("failed") or "it did not start"))
        except BaseException:
            await self.aclose()
            raise
        return process

    async def _send(self, process: Process, message: Json) -> None:
        assert process.stdin is not None
        try:
            await process.stdin.send(json.dumps(message).encode() + b"\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self.aclose()
            raise LocalModelError("unavailable", "it exited before it got the request") from None

    async def _line(self, seconds: float) -> dict[str, Json]:
        process = self._process
        if process is None or self._lines is None:
            raise LocalModelError("unavailable", "it is not running")
        try:
            with anyio.fail_after(seconds):
                message: dict[str, Json] = json.loads(await self._lines.receive_until(b"\n", _MAX_LINE))
                return message
        except anyio.DelimiterNotFound:
            raise LocalModelError("unavailable", "it wrote a line that is too long") from None
        except TimeoutError:
            await self.aclose()
            raise LocalModelError("unavailable", f"it sent nothing for {seconds:g} s") from None
        except (anyio.IncompleteRead, anyio.ClosedResourceError, anyio.BrokenResourceError):
            with anyio.move_on_after(5):
                await process.wait()
            await self.aclose()
            raise LocalModelError("unavailable", f"it exited with code {process.returncode}") from None
