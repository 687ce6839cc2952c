"""Tests of the bench: a quick run with real servers, the load client and the upstream."""

import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from bench import stamped_tokens
from bench.load_client import StreamClient
from bench.servers import completions
from bench.worker_process import WorkerProcess
from tests.fork_server import ROOT


@pytest.mark.soak
def test_quick_bench_carries_every_token_through_both_servers(tmp_path: Path) -> None:
    """Every stream is complete through Holdfast and through the relay, and the results name machine and commit."""
    command = [sys.executable, "-m", "bench", "--quick", "--only", "tokens", "--scenario", "100 streams, full"]
    servers = ["--server", "Holdfast", "--server", "bare relay"]
    done = subprocess.run(
        [*command, *servers, "--results", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "CPU ÷ relay" in done.stdout
    results = json.loads((tmp_path / "results.json").read_text())
    assert {"commit", "cpu", "cores", "python"} <= set(results["machine"])
    assert results["not_measured"] == []
    assert [(s["server"], s["whole"]) for s in results["tokens"]] == [("Holdfast", 100), ("bare relay", 100)]
    assert all(s["cpu_us_per_token"] > 0 for s in results["tokens"])


def test_load_client_notices_missing_and_reordered_tokens() -> None:
    """A stream with a missing, repeated or reordered token is not whole, however it is split into reads."""

    def read(*numbers: int, cut: int) -> StreamClient:
        body = (
            b"".join(b'data: {"text":"%b.0000001 "}\n\n' % stamped_tokens.PLACES[n] for n in numbers)
            + b"data: [DONE]\n\n"
        )
        client = StreamClient(b"", 3, lambda: None, lambda: None)
        client.status = 200
        for at in range(0, len(body), cut):
            client.on_body(body[at : at + cut])
        return client

    for cut in (1, 7, 30, 1000):
        assert read(0, 1, 2, cut=cut).whole
        assert not read(0, 2, cut=cut).whole
        assert not read(0, 2, 1, cut=cut).whole
        assert not read(0, 1, 1, 2, cut=cut).whole


def test_unrelated_stream_does_not_disturb_the_scenario() -> None:
    """The upstream answers a request of an idle server without counting it into the scenario."""
    with WorkerProcess("bench.upstream") as upstream, WorkerProcess("bench.load_client") as load:
        address = httpx.URL(upstream.call("address"))
        assert address.port is not None
        upstream.call("begin", tokens=20, rate=20.0)
        asked = completions(address.port, 3, "/v1/chat/completions", "bench")
        load.call("open", port=address.port, requests=asked, tokens=20)
        upstream.call("gather", streams=3)
        upstream.call("go")
        other = httpx.post(f"{address}/chat/completions", verify=False, json={"messages": [], "stream": True})
        assert other.text.endswith("data: [DONE]\n\n")
        load.call("tokens")
        upstream.call("finish")
        load.call("end")
        assert load.call("result")["whole"] == 3
