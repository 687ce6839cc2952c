"""The local model's process as its parent sees it: started when it is first needed, one question at a time."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import anyio
from anyio.abc import Process

from holdfast.core.parts import Json
from holdfast.core.values import dataclass

_MAX_LINE = 4 * 1024 * 1024


class Gone(Exception):
    """The process ended, or never began. The message says why."""


@dataclass(frozen=True, slots=True)
class LocalSettings:
    weights: Path
    context: int = 4096
    """Tokens of question and answer together; each costs 23 kB."""
    threads: int = 1
    idle: float = 900.0
    """Seconds without a question after which the process ends and gives its memory back."""
    patience: float = 120.0
    """Seconds in which a batch of the prompt or a token has to come."""
    start_patience: float = 60.0
    environment: Mapping[str, str] | None = None
    """What the process is given; None: the same as this one. A command could read it there."""
    command: tuple[str, ...] = (sys.executable, "-m", "holdfast.agents.models.local_worker")

    def arguments(self) -> str:
        return json.dumps(
            {"path": str(self.weights), "context": self.context, "threads": self.threads, "idle": self.idle}
        )


class LocalProcess:
    """Not safe for two readers: whoever asks holds `LocalModel`'s turn."""

    def __init__(self, settings: LocalSettings) -> None:
        self._settings = settings
        self._process: Process | None = None
        self._buffer = bytearray()
        self._last = 0

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def ask(self, body: Mapping[str, Json]) -> int:
        """Send a question; its number. Starts the process if there is none, or if it went away in between."""
        for _ in range(2):
            process = await self._started()
            self._last += 1
            try:
                await self._send(process, {"id": self._last, "ask": body})
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                await self.aclose()
                continue
            return self._last
        raise Gone("it ended as soon as it was started")

    async def chunk(self, number: int) -> Json | None:
        """The next chunk of this question's answer, None after the last. What is left of earlier ones is skipped."""
        while True:
            message = await self._line(self._settings.patience)
            if message.get("id") != number:
                continue
            return None if message.get("done") else message.get("chunk")

    async def cancel(self, number: int) -> None:
        """Stop computing the answer: after the token or the batch that is under way."""
        if self._process is not None:
            with anyio.move_on_after(1, shield=True):
                try:
                    await self._send(self._process, {"cancel": number})
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    await self.aclose()

    async def aclose(self) -> None:
        """End the process, whatever it does."""
        process, self._process = self._process, None
        self._buffer.clear()
        if process is not None:
            with anyio.CancelScope(shield=True):
                if process.returncode is None:
                    process.kill()
                await process.aclose()

    # ---- the process ----

    async def _started(self) -> Process:
        if self._process is not None and self._process.returncode is None:
            return self._process
        await self.aclose()
        with anyio.CancelScope(shield=True):  # a few milliseconds; cancelled in between, nobody would own it
            process = self._process = await anyio.open_process(
                [*self._settings.command, self._settings.arguments()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=self._settings.environment,
                start_new_session=True,  # Ctrl-C is for the server, which lets go of this in order
            )
        try:
            first = await self._line(self._settings.start_patience)
            if not first.get("ready"):
                raise Gone(str(first.get("failed") or "it did not start"))
        except BaseException:
            await self.aclose()
            raise
        return process

    async def _send(self, process: Process, message: Json) -> None:
        assert process.stdin is not None
        await process.stdin.send(json.dumps(message).encode() + b"\n")

    async def _line(self, patience: float) -> dict[str, Json]:
        process = self._process
        if process is None or process.stdout is None:
            raise Gone("it is not running")
        try:
            with anyio.fail_after(patience):
                while (end := self._buffer.find(b"\n")) < 0:
                    self._buffer.extend(await process.stdout.receive())
                    if len(self._buffer) > _MAX_LINE:
                        raise Gone("it wrote a line without end")
        except TimeoutError:
            await self.aclose()
            raise Gone(f"nothing came from it for {patience:g} s") from None
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            code = await self._exit_code(process)
            await self.aclose()
            raise Gone(f"it ended with code {code}") from None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        message: dict[str, Json] = json.loads(line)
        return message

    async def _exit_code(self, process: Process) -> int | None:
        with anyio.move_on_after(5):
            return await process.wait()
        return None
