"""Starts the servers that are compared, and builds the requests for a stream from each."""

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

from bench.process_usage import MonitoredProcess
from bench.worker_process import BenchError, bench_directory

START_TIMEOUT: Final = 300.0
"""Seconds that a server may take to start; some take minutes on a busy machine."""
PEERS: Final = Path(__file__).parent.parent / ".peers"


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that is ready. `prepare(n)` returns n requests for a stream, and creates what they need first."""

    name: str
    port: int
    process: MonitoredProcess
    prepare: Callable[[int], Sequence[str]]
    data: Path | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


ServerFactory = Callable[[str], Any]
"""Takes the upstream's address and returns a context manager that yields a `RunningServer`, or raises BenchError."""


def request(port: int, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> str:
    text = "" if body is None else json.dumps(body)
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Accept: text/event-stream"]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(text)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join(lines) + "\r\n\r\n" + text


def completions(port: int, count: int, path: str, model: str, headers: Mapping[str, str] | None = None) -> list[str]:
    """Requests in OpenAI's format; each names the number of its stream."""

    def body(n: int) -> Any:
        return {"model": model, "stream": True, "messages": [{"role": "user", "content": f"stream {n}"}]}

    return [request(port, "POST", path, body(n), headers) for n in range(count)]


# ---- Holdfast ----


def configure(data: Path, upstream: str, *, with_memory: bool = True) -> None:
    data.mkdir(parents=True, exist_ok=True)
    memory = "" if with_memory else '[memory]\nprovider = "none"\n'
    (data / "holdfast.toml").write_text(
        f'[providers.bench]\nbase_url = "{upstream}"\napi_key = "none"\nmodels = ["bench"]\ncontext = 1000000\n'
        f'[models]\ndefault = "bench/bench"\n{memory}'
    )


@contextmanager
def holdfast(
    upstream: str, data: Path | None = None, *, kind: str = "native", with_memory: bool = True
) -> Iterator[RunningServer]:
    """`kind` is the API that streams are requested from: `native` or `openai`."""
    with tempfile.TemporaryDirectory(dir=bench_directory(), prefix="holdfast-bench-") as own:
        where = data or Path(own) / "data"
        configure(where, upstream, with_memory=with_memory)
        port = free_port()
        command = [sys.executable, "-m", "holdfast", "serve", "--port", str(port), "--data-dir", str(where)]
        with running(command, port, "/readyz", _clean(os.environ), Path(own) / "log") as process:
            if kind == "native":
                yield RunningServer("Holdfast", port, process, lambda count: native(port, count), where)
                return
            if httpx.post(f"http://127.0.0.1:{port}/v1/chat/completions", json={}).status_code in (404, 405):
                raise BenchError("this version has no OpenAI-compatible API")

            def prepare(count: int) -> Sequence[str]:
                return completions(port, count, "/v1/chat/completions", "bench/bench")

            yield RunningServer("Holdfast /v1", port, process, prepare, where)


def native(port: int, count: int, lifetime: str = "attached") -> list[str]:
    return [
        request(port, "POST", f"/api/sessions/{sid}/runs", {"input": f"stream {n}", "lifetime": lifetime})
        for n, sid in enumerate(sessions(port, count))
    ]


def sessions(port: int, count: int) -> list[str]:
    """Creates sessions with a title, so that no model is asked for one."""
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
        answers = [http.post("/api/sessions", json={"title": "Bench"}) for _ in range(count)]
    return [answer.raise_for_status().json()["id"] for answer in answers]


# ---- the servers it is compared with ----


@contextmanager
def relay(upstream: str) -> Iterator[RunningServer]:
    port = free_port()
    command = [sys.executable, "-m", "bench.relay", str(port), upstream]
    with tempfile.TemporaryDirectory() as own, running(command, port, "/ready", os.environ, Path(own) / "log") as it:
        yield RunningServer(
            "bare relay", port, it, lambda count: completions(port, count, "/v1/chat/completions", "bench")
        )


@contextmanager
def litellm(upstream: str) -> Iterator[RunningServer]:
    program = _installed("litellm", "litellm")
    port = free_port()
    model = {"model": "openai/bench", "api_base": upstream, "api_key": "none"}
    key = "sk-" + secrets.token_hex(24)  # required to start
    settings = {
        "model_list": [{"model_name": "bench", "litellm_params": model}],
        "general_settings": {"master_key": key},
    }
    environment = {**_clean(os.environ), "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
    with tempfile.TemporaryDirectory(dir=bench_directory()) as own:
        config = Path(own) / "config.yaml"
        config.write_text(json.dumps(settings))  # JSON is valid YAML
        command = [str(program), "--config", str(config), "--port", str(port), "--telemetry", "False"]
        with running(command, port, "/health/liveliness", environment, Path(own) / "log") as process:

            def prepare(count: int) -> Sequence[str]:
                return completions(port, count, "/v1/chat/completions", "bench", {"Authorization": f"Bearer {key}"})

            yield RunningServer("LiteLLM proxy", port, process, prepare)


@contextmanager
def open_webui(upstream: str) -> Iterator[RunningServer]:
    program = _installed("open-webui", "open-webui")
    port = free_port()
    with tempfile.TemporaryDirectory(dir=bench_directory()) as own:
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
        with running(command, port, "/health", environment, Path(own) / "log") as process:
            url = f"http://127.0.0.1:{port}"
            login = httpx.post(f"{url}/api/v1/auths/signin", json={"email": "", "password": ""}, timeout=60)
            if login.status_code != 200:
                raise BenchError(f"sign-in failed with status {login.status_code}")
            access = {"Authorization": f"Bearer {login.json()['token']}"}
            httpx.get(f"{url}/api/models", headers=access, timeout=60)  # it learns the models from this request

            def prepare(count: int) -> Sequence[str]:
                return completions(port, count, "/api/chat/completions", "bench", access)

            yield RunningServer("Open WebUI", port, process, prepare)


def _installed(peer: str, program: str) -> Path:
    path = PEERS / peer / "bin" / program
    if not path.exists():
        raise BenchError("not installed; run `make bench-peers`")
    return path


# ---- processes ----


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _clean(environment: Mapping[str, str]) -> dict[str, str]:
    """Without the provider keys and settings of whoever runs the bench."""
    ours = ("OPENAI_", "ANTHROPIC_", "HOLDFAST_", "GEMINI_", "GOOGLE_", "OPENROUTER_", "GROQ_", "MISTRAL_")
    return {name: value for name, value in environment.items() if not name.startswith(ours)}


@contextmanager
def running(
    command: Sequence[str], port: int, path: str, environment: Mapping[str, str], log: Path
) -> Iterator[MonitoredProcess]:
    with log.open("wb") as out:
        wrapped = [sys.executable, "-m", "bench.die_with_parent", *command]
        process = subprocess.Popen(wrapped, env=environment, stdout=out, stderr=out)
    with MonitoredProcess(process) as monitored:
        wait_for(process, port, path, log)
        yield monitored


def wait_for(process: subprocess.Popen[bytes], port: int, path: str, log: Path) -> float:
    """Wait until the server answers; the time of that by the monotonic clock."""
    give_up_at = time.monotonic() + START_TIMEOUT
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=5) as http:
        while time.monotonic() < give_up_at:
            if process.poll() is not None:
                last = log.read_text("utf-8", "replace").strip().splitlines()[-1:] or ["nothing"]
                raise BenchError(f"the server exited during start-up: {last[0][:120]}")
            try:
                if http.get(path).status_code == 200:
                    return time.monotonic()
            except httpx.TransportError:
                time.sleep(0.005)
    raise BenchError(f"the server did not answer within {START_TIMEOUT:g} s")


STREAMING: Final[Mapping[str, ServerFactory]] = {
    "Holdfast": holdfast,
    "Holdfast /v1": lambda upstream: holdfast(upstream, kind="openai"),
    "bare relay": relay,
    "LiteLLM proxy": litellm,
    "Open WebUI": open_webui,
}
