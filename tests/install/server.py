"""A server in the root, and a person who talks to it over HTTP."""

import json
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Final

import httpx

GUARD: Final = 120.0
MODEL: Final = "local/smollm2-135m"


class InstalledServer:
    """Started with its command line; `lines` is what it printed before its address."""

    def __init__(self, command: Sequence[str]) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        assert self.process.stdout is not None
        while not self.lines or " running at " not in self.lines[-1]:
            assert select.select([self.process.stdout], [], [], GUARD)[0], self.lines
            line = self.process.stdout.readline()
            assert line, f"it ended with {self.process.wait()} after {self.lines}"
            self.lines.append(line.strip())
        self.url = self.lines.pop().split()[-1]
        self.http = httpx.Client(base_url=self.url, timeout=GUARD, trust_env=False)

    def log_in(self, password: str) -> "InstalledServer":
        self.http.post("/api/login", json={"password": password}).raise_for_status()
        return self

    def kill(self) -> None:
        """kill -9, which leaves it no time for anything."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(GUARD) == 0

    def __enter__(self) -> "InstalledServer":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.http.close()
        if self.process.poll() is None:
            self.kill()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def get(self, path: str) -> Any:
        return self.http.get(path).raise_for_status().json()

    def post(self, path: str, body: Any) -> Any:
        return self.http.post(path, json=body).raise_for_status().json()

    def ask(self, question: str, session: str | None = None) -> tuple[str, str]:
        """Sends a question and returns the ids of its session and run."""
        session = session or self.post("/api/sessions", {"model": MODEL})["id"]
        return session, self.post(f"/api/sessions/{session}/runs", {"input": question})["run"]["id"]

    def events(self, run: str) -> Iterator[tuple[str, Any]]:
        """Events of a run as they arrive; ends early if the server is killed."""
        with self.http.stream("GET", f"/api/runs/{run}/events") as response:
            name = ""
            for line in response.iter_lines():
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    yield name, json.loads(value)

    def answer(self, run: str) -> str:
        """The whole answer of a run that must complete."""
        text, name, data = "", "", None
        for name, data in self.events(run):
            text += data["text"] if name == "text.delta" else ""
        assert name == "run.complete", (name, data, text)
        return text

    def transcript(self) -> dict[str, list[tuple[str, str, str]]]:
        """Every message of every session: role, status and text."""
        found = {}
        for session in self.get("/api/sessions?limit=100")["items"]:
            messages = self.get(f"/api/sessions/{session['id']}/messages?limit=100")["items"]
            found[session["id"]] = [
                (each["role"], each["status"], "".join(part.get("text", "") for part in each["parts"]))
                for each in messages
            ]
        return found

    def wait_until_settled(self, run: str) -> str:
        """The status of a run that the server recovers after a start."""
        ends_at = time.monotonic() + GUARD
        while (status := str(self.get(f"/api/runs/{run}")["status"])) in ("queued", "running", "waiting"):
            assert time.monotonic() < ends_at, status
            for _ in self.events(run):  # ends when the run has
                pass
        return status
