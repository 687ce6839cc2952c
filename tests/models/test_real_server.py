"""The client and the catalogue against a real server of OpenAI's format: llama.cpp's own, with the small model."""

import subprocess
import sys
from collections.abc import Iterator

import anyio
import pytest

from holdfast.agents.models.catalogue import Catalogue, CatalogueSettings
from holdfast.agents.models.port import AssistantSaid, Request, UserSaid
from holdfast.core.parts import Text
from holdfast.testing.fakes import FakeClock
from tests.models.asking import outcome
from tests.models.test_local import LONG, WEIGHTS, ask, needs_weights
from tests.upstream import GUARD

pytestmark = [pytest.mark.anyio, needs_weights]

SERVER = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_ctx, params.n_batch, params.n_ubatch, params.n_parallel = 1024, 64, 64, 1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.warmup, params.verbosity, params.cache_ram_mib = False, -1, 0
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Of a llama.cpp server that lives as long as this module's tests."""
    command = [sys.executable, "-c", SERVER, str(WEIGHTS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        yield int(server.stdout.readline().strip().rsplit(b":", 1)[1])
        server.kill()


def at(port: int) -> Catalogue:
    return Catalogue(CatalogueSettings(ports={"llamacpp": port}, here=GUARD), FakeClock())


async def test_it_is_found_and_answers(port: int) -> None:
    """Found on its port, listed with its context, it is the default and streams text with usage."""
    async with at(port) as catalogue:
        name = await catalogue.default()
        (info,) = [info for info in await catalogue.list() if info.id == name]
        assert info.provider == "llama.cpp"
        assert info.name.startswith("SmolLM2")
        assert (info.context or 0) >= 1024
        got = await outcome(catalogue.get(name), ask("Say hello with an emoji."))
    assert got.failed is None
    assert got.text.strip()
    assert got.batches > 3
    assert got.usage[0].output_tokens > 3
    assert got.finish_reason in ("stop", "length")


async def test_it_goes_on_from_a_prefilled_answer(port: int) -> None:
    """Continuing an interrupted answer repeats nothing of it."""
    said = (UserSaid(("What is the capital of France?",)), AssistantSaid((Text("The capital of France is"),)))
    async with at(port) as catalogue:
        model = catalogue.get(await catalogue.default())
        assert "prefill" in model.info.abilities
        got = await outcome(model, Request(None, said, settings={"temperature": 0, "max_tokens": 4}))
    assert "Paris" in got.text
    assert "capital" not in got.text


async def test_a_conversation_that_is_too_long(port: int) -> None:
    """The server's words are understood as what they mean."""
    async with at(port) as catalogue:
        got = await outcome(catalogue.get(await catalogue.default()), ask(LONG * 2))
    assert got.failed is not None
    assert got.failed.code == "context-length"


async def test_cancel_frees_the_server(port: int) -> None:
    """C7: the slot of an answer that was given up is free for the next, long before it would have ended."""
    async with at(port) as catalogue:
        model = catalogue.get(await catalogue.default())
        with anyio.CancelScope() as scope:
            async with model.stream(ask("A very long story.", max_tokens=900)) as answer:
                async for _ in answer:
                    scope.cancel()
        assert (await outcome(model, ask("Hi", max_tokens=3))).text
