"""The test's end: a server process and its client."""

import json
import os
import resource
import select
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import httpx

from tests.fork_server import Fresh, Process, ServerForker
from tests.http.streams import GUARD, Follower, Frame, Stream, until

OPEN: Final = ("queued", "running", "waiting")
PROBLEMS: Final = {
    "not-found": 404,
    "session-busy": 409,
    "not-allowed": 409,
    "already-decided": 409,
    "key-canceled": 409,
    "cursor-ahead": 409,
    "journal-pruned": 410,
    "version-mismatch": 412,
    "invalid": 422,
    "idempotency-key-reused": 422,
    "budget-reached": 429,
    "draining": 503,
    "storage-unavailable": 503,
    "storage-full": 507,
}
"""Types of problems and the status each comes with."""


class Served:
    """A server process on a data directory."""

    def __init__(self, forker: ServerForker | Fresh, data_dir: Path, **settings: Any) -> None:
        stdin, self._orders = os.pipe()
        self._lines, stdout = os.pipe()
        # Not a pipe: what was written before an answer came is there to be read.
        self._errors = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed when the process has ended
        self._complaints = ""
        arguments = [json.dumps({"data_dir": str(data_dir), "port": 0, **settings})]
        try:
            self.process: Process = forker.spawn(arguments, stdin, stdout, self._errors.fileno())
        finally:
            for fd in (stdin, stdout):
                os.close(fd)
        self.data_dir = data_dir
        self._rest = b""
        self.exit_code: int | None = None
        self.url = ""
        self.http = httpx.Client(verify=False)

    @property
    def complaints(self) -> str:
        """What the process has written to stderr so far."""
        if not self._errors.closed:
            fd = self._errors.fileno()
            return os.pread(fd, os.fstat(fd).st_size, 0).decode()
        return self._complaints

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("http://").partition(":")
        return host, int(port)

    @property
    def resident(self) -> int:
        """Bytes of physical memory that the process uses."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * resource.getpagesize()

    @property
    def cpu_seconds(self) -> float:
        """Processor time that the server has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def ready(self) -> "Served":
        self.http.close()
        self.url = self._hear()["url"]
        self.http = httpx.Client(base_url=self.url, timeout=GUARD, verify=False)
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

    def clean(self) -> None:
        """Leave nothing that the next test would notice."""
        self.order(reset=True)
        self.http.cookies.clear()
        self.call("PUT", "/api/drafts/new", {"text": ""}, 200)
        for kind in ("prompts", "personas"):
            for item in self.get(f"/api/{kind}")["items"]:
                self.call("DELETE", f"/api/{kind}/{item['id']}", expect=204)
        for which in ({}, {"archived": True}, {"source": "compare"}):
            while items := self.get("/api/sessions", params={"limit": 200, **which})["items"]:
                for item in items:
                    self.call("DELETE", f"/api/sessions/{item['id']}", expect=204)
        until(lambda: self.order(upstreams=True), lambda count: count == 0)

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
            self._complaints = self.complaints
            self._errors.close()
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
        answer = self.http.request(method, path, json=body, **how)
        if expect is not None:
            assert answer.status_code == expect, (answer.status_code, answer.text)
        return answer.json() if answer.content else None

    def set_budgets(self, *items: Any, time_zone: str = "UTC") -> None:
        """These instead of all that there are."""
        for item in self.get("/api/budgets")["items"]:
            self.call("DELETE", f"/api/budgets/{item['id']}", expect=204)
        self.call("PATCH", "/api/budgets", {"time_zone": time_zone}, 200)
        for item in items:
            self.post("/api/budgets", item, 201)

    def get(self, path: str, expect: int = 200, **how: Any) -> Any:
        return self.call("GET", path, expect=expect, **how)

    def post(self, path: str, body: Any = None, expect: int = 200, **how: Any) -> Any:
        return self.call("POST", path, body, expect, **how)

    def refused(self, problem: str, method: str, path: str, body: Any = None, **how: Any) -> Any:
        """A call that must be answered with this problem; its body."""
        answer = self.http.request(method, path, json=body, **how)
        found = answer.json()
        assert (answer.status_code, found["type"]) == (PROBLEMS[problem], problem), (answer.status_code, found)
        assert answer.headers["content-type"] == "application/problem+json"
        assert found["status"] == answer.status_code
        assert found["title"]
        assert found["detail"]
        assert ("retry-after" in answer.headers) == (answer.status_code == 503 or problem == "budget-reached")
        return found

    def session(self, **fields: Any) -> str:
        sid: str = self.post("/api/sessions", fields, 201)["id"]
        return sid

    def send(self, sid: str, script: Any, key: str | None = None, expect: int = 202, **how: Any) -> Any:
        """`script`: a text, or actions as `scripts.py` has them. The answer: `{run, message}`."""
        text = script if isinstance(script, str) else json.dumps(script)
        headers = {} if key is None else {"Idempotency-Key": key}
        return self.post(f"/api/sessions/{sid}/runs", {"input": text, **how}, expect, headers=headers)

    def begin(self, sid: str, script: Any, key: str | None = None, **how: Any) -> str:
        """Send; the run's id."""
        rid: str = self.send(sid, script, key, **how)["run"]["id"]
        return rid

    def run(self, rid: str) -> Any:
        return self.get(f"/api/runs/{rid}")

    def ended(self, rid: str) -> Any:
        """Wait for the run's end; the run."""
        self.events(rid)
        return until(lambda: self.run(rid), lambda run: run["status"] not in OPEN)

    def stand(self, sid: str, script: Any, gate: str = "here", **how: Any) -> str:
        """Send, and wait until the run is at its gate and what it said before is durable; the run's id."""
        rid = self.begin(sid, script, **how)
        self.stands(rid, gate)
        return rid

    def stands(self, rid: str, gate: str = "here") -> None:
        self.order(reached=gate)
        with self.watch(rid) as stream:
            stream.until("text.delta")

    def turn(self, sid: str, script: Any) -> Any:
        """Send and wait for the end; the answer."""
        self.ended(self.begin(sid, script))
        return self.answer(sid)

    def cancel(self, rid: str) -> Any:
        return self.post(f"/api/runs/{rid}/cancel")

    def look(self, sid: str) -> Any:
        return self.get(f"/api/sessions/{sid}")

    def listed(self, sid: str) -> Any:
        """The session as the list has it."""
        (found,) = [item for item in self.get("/api/sessions", params={"limit": 200})["items"] if item["id"] == sid]
        return found

    def follow(self, rid: str, after: int = 0) -> Follower:
        return Follower(self.url, "GET", f"/api/runs/{rid}/events", params={"after": after})

    def follow_changes(self, after: str | None = None) -> Follower:
        return Follower(self.url, "GET", "/api/events", headers={} if after is None else {"Last-Event-ID": after})

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        lines = self.http.get("/metrics").text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.partition(" ")[0].partition("{")[0] == name)

    def messages(self, sid: str) -> Any:
        return self.get(f"/api/sessions/{sid}/messages")["items"]

    def answer(self, sid: str) -> Any:
        return self.messages(sid)[-1]

    @contextmanager
    def stream(self, method: str, path: str, **how: Any) -> Iterator[Stream]:
        with self.http.stream(method, path, **how) as response:
            if response.status_code != 200:
                response.read()
            yield Stream(response)

    def watch(self, rid: str, after: int | None = None, last_id: str | None = None) -> AbstractContextManager[Stream]:
        params = {} if after is None else {"after": after}
        headers = {} if last_id is None else {"Last-Event-ID": last_id}
        return self.stream("GET", f"/api/runs/{rid}/events", params=params, headers=headers)

    def events(self, rid: str, after: int = 0) -> list[Frame]:
        """All of them, to the end of the run."""
        with self.watch(rid, after) as stream:
            return stream.rest() if stream.response.status_code == 200 else []

    def all_events(self, rid: str) -> list[Frame]:
        """The same of a client that comes back if it is dropped, as one may be that a busy machine makes slow."""
        frames: list[Frame] = []

        def ended() -> bool:
            frames.extend(self.events(rid, frames[-1].seq if frames else 0))
            return frames[-1:] != [] and frames[-1].event == "run.complete"

        until(ended)
        return frames

    def attached(self, sid: str, script: Any, key: str | None = None, **how: Any) -> AbstractContextManager[Stream]:
        body = {"input": script if isinstance(script, str) else json.dumps(script), "lifetime": "attached", **how}
        headers = {} if key is None else {"Idempotency-Key": key}
        return self.stream("POST", f"/api/sessions/{sid}/runs", json=body, headers=headers)

    @property
    def effects(self) -> list[str]:
        file = self.data_dir / "effects"
        return file.read_text().splitlines() if file.exists() else []


def import_lines(server: Served, content: bytes | str, **params: Any) -> list[Any]:
    """Import an export in our format; the imported sessions."""
    headers = {"Content-Type": "application/x-ndjson"}
    answer = server.http.post("/api/import", content=content, headers=headers, params=params)
    assert answer.status_code == 201, answer.text
    items: list[Any] = answer.json()["items"]
    return items


def summarize(server: Served, sid: str, mid: str, summary: str) -> str:
    """Replace the session by an import of it with a summary of everything up to this message. Returns the new id."""
    lines = [json.loads(line) for line in server.http.get(f"/api/sessions/{sid}/export").text.splitlines()]
    end = next(n for n, line in enumerate(lines) if line["type"] == "end")
    lines[end]["compactions"] += 1
    told = {"message_id": mid, "summary": summary, "created_at": "2026-11-18T12:00:00Z"}
    lines.insert(end, {"type": "compaction", **told})
    server.call("DELETE", f"/api/sessions/{sid}", expect=204)
    (imported,) = import_lines(server, "\n".join(json.dumps(line) for line in lines))
    return str(imported["session_id"])
