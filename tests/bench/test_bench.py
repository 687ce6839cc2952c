"""The bench measures what it says: real servers, real sockets, a scripted upstream."""

import json
import subprocess
import sys
from pathlib import Path

import httpx

from bench import wire
from bench.child import Child
from bench.load import Client
from bench.targets import completions
from tests.nursery import ROOT


def test_a_quick_bench_carries_every_token_through_both_servers(tmp_path: Path) -> None:
    """One scenario end to end: every stream is whole through Holdfast and through the relay, and the figures are
    kept with the machine and the commit."""
    command = [sys.executable, "-m", "bench", "--quick", "--only", "tokens", "--scenario", "100 streams, full"]
    servers = ["--server", "Holdfast", "--server", "bare relay"]
    done = subprocess.run(
        [*command, *servers, "--results", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "CPU ÷ relay" in done.stdout
    kept = json.loads((tmp_path / "results.json").read_text())
    assert {"commit", "cpu", "cores", "python"} <= set(kept["machine"])
    assert kept["not_shown"] == []
    assert [(s["server"], s["whole"]) for s in kept["tokens"]] == [("Holdfast", 100), ("bare relay", 100)]
    assert all(s["cpu_us_per_token"] > 0 for s in kept["tokens"])


def test_the_load_client_notices_what_is_missing_or_out_of_order() -> None:
    """A stream with a lost token, or with two in the wrong order, is not whole, however it was cut."""

    def read(*numbers: int, cut: int) -> Client:
        body = b"".join(b'data: {"text":"%b.0000001 "}\n\n' % wire.NUMBERS[n] for n in numbers) + b"data: [DONE]\n\n"
        client = Client(b"", 3, lambda: None, lambda: None)
        client.status = 200
        for at in range(0, len(body), cut):
            client.on_body(body[at : at + cut])
        return client

    for cut in (1, 7, 30, 1000):
        assert read(0, 1, 2, cut=cut).whole
        assert not read(0, 2, cut=cut).whole
        assert not read(0, 2, 1, cut=cut).whole
        assert not read(0, 1, 1, 2, cut=cut).whole


def test_a_stream_that_comes_in_between_does_not_mix_up_the_others() -> None:
    """What a server that stands by asks the upstream for is answered, and is no part of what is measured."""
    with Child("bench.upstream") as upstream, Child("bench.load") as load:
        address = httpx.URL(upstream.tell("address"))
        assert address.port is not None
        upstream.tell("begin", tokens=20, rate=20.0)
        asked = completions(address.port, 3, "/v1/chat/completions", "bench")
        load.tell("open", port=address.port, requests=asked, tokens=20)
        upstream.tell("gather", streams=3)
        upstream.tell("go")
        other = httpx.post(f"{address}/chat/completions", json={"messages": [], "stream": True})
        assert other.text.endswith("data: [DONE]\n\n")
        load.tell("tokens")
        upstream.tell("finish")
        load.tell("end")
        assert load.tell("result")["whole"] == 3
