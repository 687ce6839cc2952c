"""The test's end: a server process, and a client that reads streams frame by frame."""

import contextlib
import json
import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import httpx

from tests.nursery import Fresh, Nursery, Process

GUARD: Final = 30.0
"""Seconds after which something that should happen has not."""


@dataclass(frozen=True, slots=True)
class Frame:
    id: str | None
    event: str
    data: Any
    raw: bytes

    @property
    def seq(self) -> int:
        assert self.id is not None
        return int(self.id)


@dataclass
class Stream:
    """An open event stream. `frames` are all that have been read."""

    response: httpx.Response
    frames: list[Frame] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    _rest: bytes = b""
    _bytes: Iterator[bytes] | None = None

    def next(self) -> Frame | None:
        """The next frame, or None at the end of the stream."""
        if self._bytes is None:
            self._bytes = self.response.iter_raw()
        while True:
            while b"\n\n" in self._rest:
                block, _, self._rest = self._rest.partition(b"\n\n")
                frame = _parse(block)
                if frame is None:
                    self.comments.append(block.decode())
                    continue
                self.frames.append(frame)
                return frame
            try:
                self._rest += next(self._bytes)
            except (StopIteration, httpx.RemoteProtocolError, httpx.ReadError):
                return None

    def until(self, event: str) -> Frame:
        """Read to the next frame of this type."""
        while (frame := self.next()) is not None:
            if frame.event == event:
                return frame
        raise AssertionError(f"the stream ended without {event}: {[frame.event for frame in self.frames]}")

    def rest(self) -> list[Frame]:
        while self.next() is not None:
            pass
        return self.frames

    def comment(self) -> str:
        """Read until a comment has come."""
        before = len(self.comments)
        while len(self.comments) == before:
            assert self._bytes is not None
            self._rest += next(self._bytes)
            while b"\n\n" in self._rest and self._rest.startswith(b":"):
                block, _, self._rest = self._rest.partition(b"\n\n")
                self.comments.append(block.decode())
        return self.comments[-1]


def _parse(block: bytes) -> Frame | None:
    fields: dict[str, str] = {}
    for line in block.decode().split("\n"):
        name, _, value = line.partition(": ")
        fields[name] = value
    if "event" not in fields:
        return None
    return Frame(fields.get("id"), fields["event"], json.loads(fields["data"]), block + b"\n\n")


class Served:
    """A server process on a data directory."""

    def __init__(self, nursery: Nursery | Fresh, data_dir: Path, **settings: Any) -> None:
        stdin, self._orders = os.pipe()
        self._lines, stdout = os.pipe()
        error_read, stderr = os.pipe()
        self._errors = bytearray()
        arguments = [json.dumps({"data_dir": str(data_dir), "port": 0, **settings})]
        try:
            self.process: Process = nursery.spawn(arguments, stdin, stdout, stderr)
        finally:
            for fd in (stdin, stdout, stderr):
                os.close(fd)
        self._reader = threading.Thread(target=self._read_errors, args=(error_read,), daemon=True)
        self._reader.start()
        self.data_dir = data_dir
        self._rest = b""
        self.exit_code: int | None = None
        self.url = ""
        self.http = httpx.Client()

    def _read_errors(self, fd: int) -> None:
        while got := os.read(fd, 65536):
            self._errors += got
        os.close(fd)

    @property
    def complaints(self) -> str:
        return self._errors.decode()

    def ready(self) -> "Served":
        self.url = self._hear()["url"]
        self.http = httpx.Client(base_url=self.url, timeout=GUARD)
        return self

    def _hear(self) -> Any:
        ends_at = time.monotonic() + GUARD
        while b"\n" not in self._rest:
            readable, _, _ = select.select([self._lines], [], [], max(0.0, ends_at - time.monotonic()))
            got = os.read(self._lines, 65536) if readable else b""
            assert got, f"the server said nothing; on stderr: {self.complaints}"
            self._rest += got
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def order(self, **order: Any) -> Any:
        """Tell the process to do something that no client could."""
        os.write(self._orders, json.dumps(order).encode() + b"\n")
        return self._hear()["ok"]

    # ---- its end ----

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def terminate(self) -> int:
        return self._end(signal.SIGTERM)

    def tell(self, which: int) -> None:
        os.kill(self.process.pid, which)

    def buried(self) -> int:
        """Wait for its end; the exit code, or minus the signal."""
        if self.exit_code is None:
            ends_at = time.monotonic() + GUARD
            while True:  # its pipe closes when it goes
                readable, _, _ = select.select([self._lines], [], [], max(0.0, ends_at - time.monotonic()))
                assert readable, f"the server did not end; on stderr: {self.complaints}"
                if not os.read(self._lines, 65536):
                    break
            self.exit_code = self.process.wait()
            self._reader.join(GUARD)
            os.close(self._lines)
            os.close(self._orders)
            self.http.close()
        return self.exit_code

    def _end(self, how: int) -> int:
        if self.exit_code is None:
            self.tell(how)
        return self.buried()

    def __enter__(self) -> "Served":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.exit_code is None:
            self.kill()

    # ---- calls ----

    def call(self, method: str, path: str, body: Any = None, expect: int | None = None, **how: Any) -> Any:
        answer = (
            self.http.request(method, path, json=body, **how)
            if body is not None
            else self.http.request(method, path, **how)
        )
        if expect is not None:
            assert answer.status_code == expect, (answer.status_code, answer.text)
        return answer.json() if answer.content else None

    def get(self, path: str, expect: int = 200, **how: Any) -> Any:
        return self.call("GET", path, expect=expect, **how)

    def post(self, path: str, body: Any = None, expect: int = 200, **how: Any) -> Any:
        return self.call("POST", path, body, expect, **how)

    def session(self, **fields: Any) -> str:
        sid: str = self.post("/api/sessions", fields, 201)["id"]
        return sid

    def send(self, sid: str, script: Any, key: str | None = None, expect: int = 202, **how: Any) -> Any:
        """`script`: a text, or actions as `scripts.py` has them. The answer: `{run, message}`."""
        text = script if isinstance(script, str) else json.dumps(script)
        headers = {} if key is None else {"Idempotency-Key": key}
        return self.post(f"/api/sessions/{sid}/runs", {"input": text, **how}, expect, headers=headers)

    def run(self, rid: str) -> Any:
        return self.get(f"/api/runs/{rid}")

    def messages(self, sid: str) -> Any:
        return self.get(f"/api/sessions/{sid}/messages")["items"]

    def answer(self, sid: str) -> Any:
        return self.messages(sid)[-1]

    @contextlib.contextmanager
    def watch(self, rid: str, after: int | None = None, last_id: str | None = None) -> Iterator[Stream]:
        params = {} if after is None else {"after": after}
        headers = {} if last_id is None else {"Last-Event-ID": last_id}
        with self.http.stream("GET", f"/api/runs/{rid}/events", params=params, headers=headers) as response:
            if response.status_code != 200:
                response.read()
            yield Stream(response)

    def events(self, rid: str, after: int = 0) -> list[Frame]:
        """All of them, to the end of the run."""
        with self.watch(rid, after) as stream:
            return stream.rest() if stream.response.status_code == 200 else []

    @contextlib.contextmanager
    def attached(self, sid: str, script: Any, key: str | None = None, **how: Any) -> Iterator[Stream]:
        body = {"input": script if isinstance(script, str) else json.dumps(script), "lifetime": "attached", **how}
        headers = {} if key is None else {"Idempotency-Key": key}
        with self.http.stream("POST", f"/api/sessions/{sid}/runs", json=body, headers=headers) as response:
            if response.status_code != 200:
                response.read()
            yield Stream(response)

    @contextlib.contextmanager
    def stream(self, method: str, path: str, **how: Any) -> Iterator[Stream]:
        with self.http.stream(method, path, **how) as response:
            yield Stream(response)

    @property
    def effects(self) -> list[str]:
        file = self.data_dir / "effects"
        return file.read_text().splitlines() if file.exists() else []
