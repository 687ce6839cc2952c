"""The servers that are measured side by side: how each is started, and how a stream is asked of it."""

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from bench.child import Trouble, directory
from bench.process import Watched

PATIENCE: Final = 300.0
"""Seconds that a server may take to start: some take minutes on a busy machine."""
PEERS: Final = Path(__file__).parent.parent / ".peers"


@dataclass(frozen=True, slots=True)
class Served:
    """A server that answers. `prepare` makes so many requests for a stream, with all that has to be there first."""

    name: str
    port: int
    watched: Watched
    prepare: Callable[[int], Sequence[str]]
    data: Path | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


Start = Callable[[str], Any]
"""Of an upstream's address, a context manager that gives a `Served`; Trouble says why there is none."""


def request(port: int, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> str:
    text = "" if body is None else json.dumps(body)
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Accept: text/event-stream"]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(text)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join(lines) + "\r\n\r\n" + text


def completions(port: int, count: int, path: str, model: str, headers: Mapping[str, str] | None = None) -> list[str]:
    """The same in OpenAI's format: each stream says its number."""

    def body(n: int) -> Any:
        return {"model": model, "stream": True, "messages": [{"role": "user", "content": f"stream {n}"}]}

    return [request(port, "POST", path, body(n), headers) for n in range(count)]


# ---- Holdfast ----


def configure(data: Path, upstream: str, *, remembers: bool = True) -> None:
    data.mkdir(parents=True, exist_ok=True)
    memory = "" if remembers else '[memory]\nprovider = "none"\n'
    (data / "holdfast.toml").write_text(
        f'[providers.bench]\nbase_url = "{upstream}"\napi_key = "none"\nmodels = ["bench"]\ncontext = 1000000\n'
        f'[models]\ndefault = "bench/bench"\n{memory}'
    )


@contextmanager
def holdfast(
    upstream: str, data: Path | None = None, *, kind: str = "native", remembers: bool = True
) -> Iterator[Served]:
    """`kind`: which of its faces is asked for streams."""
    with tempfile.TemporaryDirectory(dir=directory(), prefix="holdfast-bench-") as own:
        where = data or Path(own) / "data"
        configure(where, upstream, remembers=remembers)
        port = free_port()
        command = [sys.executable, "-m", "holdfast", "serve", "--port", str(port), "--data-dir", str(where)]
        with running(command, port, "/readyz", _clean(os.environ), Path(own) / "log") as watched:
            if kind == "native":
                yield Served("Holdfast", port, watched, lambda count: native(port, count), where)
                return
            if httpx.post(f"http://127.0.0.1:{port}/v1/chat/completions", json={}).status_code in (404, 405):
                raise Trouble("this version has no /v1")

            def prepare(count: int) -> Sequence[str]:
                return completions(port, count, "/v1/chat/completions", "bench/bench")

            yield Served("Holdfast /v1", port, watched, prepare, where)


def native(port: int, count: int, lifetime: str = "attached") -> list[str]:
    return [
        request(port, "POST", f"/api/sessions/{sid}/runs", {"input": f"stream {n}", "lifetime": lifetime})
        for n, sid in enumerate(sessions(port, count))
    ]


def sessions(port: int, count: int) -> list[str]:
    """Fresh ones, with a title: no model has to be asked for one."""
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
        answers = [http.post("/api/sessions", json={"title": "Bench"}) for _ in range(count)]
    return [answer.raise_for_status().json()["id"] for answer in answers]


# ---- the others ----


@contextmanager
def relay(upstream: str) -> Iterator[Served]:
    port = free_port()
    command = [sys.executable, "-m", "bench.relay", str(port), upstream]
    with tempfile.TemporaryDirectory() as own, running(command, port, "/ready", os.environ, Path(own) / "log") as it:
        yield Served("bare relay", port, it, lambda count: completions(port, count, "/v1/chat/completions", "bench"))


@contextmanager
def litellm(upstream: str) -> Iterator[Served]:
    program = _installed("litellm", "litellm")
    port = free_port()
    model = {"model": "openai/bench", "api_base": upstream, "api_key": "none"}
    key = "sk-" + secrets.token_hex(24)  # it does not start without one
    settings = {
        "model_list": [{"model_name": "bench", "litellm_params": model}],
        "general_settings": {"master_key": key},
    }
    environment = {**_clean(os.environ), "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
    with tempfile.TemporaryDirectory(dir=directory()) as own:
        config = Path(own) / "config.yaml"
        config.write_text(json.dumps(settings))  # YAML reads it too
        command = [str(program), "--config", str(config), "--port", str(port), "--telemetry", "False"]
        with running(command, port, "/health/liveliness", environment, Path(own) / "log") as watched:

            def prepare(count: int) -> Sequence[str]:
                return completions(port, count, "/v1/chat/completions", "bench", {"Authorization": f"Bearer {key}"})

            yield Served("LiteLLM proxy", port, watched, prepare)


@contextmanager
def open_webui(upstream: str) -> Iterator[Served]:
    program = _installed("open-webui", "open-webui")
    port = free_port()
    with tempfile.TemporaryDirectory(dir=directory()) as own:
        environment = {
            **_clean(os.environ),
            "DATA_DIR": own,
            "WEBUI_AUTH": "False",
            "WEBUI_SECRET_KEY": "bench",
            "OPENAI_API_BASE_URL": upstream,
            "OPENAI_API_KEY": "none",
            "ENABLE_OLLAMA_API": "False",
            "OFFLINE_MODE": "True",
            "HF_HUB_OFFLINE": "1",
            "RAG_EMBEDDING_ENGINE": "openai",
            "GLOBAL_LOG_LEVEL": "ERROR",
        }
        command = [str(program), "serve", "--host", "127.0.0.1", "--port", str(port)]
        with running(command, port, "/health", environment, Path(own) / "log") as watched:
            url = f"http://127.0.0.1:{port}"
            login = httpx.post(f"{url}/api/v1/auths/signin", json={"email": "", "password": ""}, timeout=60)
            if login.status_code != 200:
                raise Trouble(f"it lets nobody in: {login.status_code}")
            access = {"Authorization": f"Bearer {login.json()['token']}"}
            httpx.get(f"{url}/api/models", headers=access, timeout=60)  # it knows a model only after that

            def prepare(count: int) -> Sequence[str]:
                return completions(port, count, "/api/chat/completions", "bench", access)

            yield Served("Open WebUI", port, watched, prepare)


def _installed(peer: str, program: str) -> Path:
    path = PEERS / peer / "bin" / program
    if not path.exists():
        raise Trouble("not installed; `make bench-peers` does that")
    return path


# ---- processes ----


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _clean(environment: Mapping[str, str]) -> dict[str, str]:
    """Without keys and settings of the person who measures: nothing of his is asked, or used up."""
    ours = ("OPENAI_", "ANTHROPIC_", "HOLDFAST_", "GEMINI_", "GOOGLE_", "OPENROUTER_", "GROQ_", "MISTRAL_")
    return {name: value for name, value in environment.items() if not name.startswith(ours)}


@contextmanager
def running(
    command: Sequence[str], port: int, path: str, environment: Mapping[str, str], log: Path
) -> Iterator[Watched]:
    with log.open("wb") as out:
        leash = [sys.executable, "-m", "bench.leash", *command]
        process = subprocess.Popen(leash, env=environment, stdout=out, stderr=out)
    with Watched(process) as watched:
        wait_for(process, port, path, log)
        yield watched


def wait_for(process: subprocess.Popen[bytes], port: int, path: str, log: Path) -> float:
    """Until it answers; when that was, by the shared clock."""
    give_up_at = time.monotonic() + PATIENCE
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=5) as http:
        while time.monotonic() < give_up_at:
            if process.poll() is not None:
                last = log.read_text("utf-8", "replace").strip().splitlines()[-1:] or ["nothing"]
                raise Trouble(f"it ended while it started; its last words: {last[0][:120]}")
            try:
                if http.get(path).status_code == 200:
                    return time.monotonic()
            except httpx.TransportError:
                time.sleep(0.005)
    raise Trouble(f"it did not answer within {PATIENCE:g} s")


STREAMING: Final[Mapping[str, Start]] = {
    "Holdfast": holdfast,
    "Holdfast /v1": lambda upstream: holdfast(upstream, kind="openai"),
    "bare relay": relay,
    "LiteLLM proxy": litellm,
    "Open WebUI": open_webui,
}
