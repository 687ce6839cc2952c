"""The client and the catalogue against a real server of OpenAI's format: llama.cpp's own, with the small model."""

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator

import anyio
import pytest

from holdfast.models.catalog import CatalogSettings, ModelCatalog
from holdfast.ports.model import Model
from holdfast.testing.fakes import FakeClock
from tests.models.asking import outcome
from tests.models.test_local_model import LONG, PREFILLED, WEIGHTS, ask, needs_weights
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


@pytest.fixture
async def model(port: int) -> AsyncIterator[Model]:
    """Found on its port, it is the default."""
    settings = CatalogSettings(ports={"llamacpp": port}, list_timeout=GUARD)
    async with ModelCatalog(settings, FakeClock()) as catalog:
        name = await catalog.default()
        assert name in [info.id for info in await catalog.list()]
        yield catalog.get(name)


async def test_it_is_found_and_answers(model: Model) -> None:
    """Listed with its context, it streams text with usage."""
    assert model.info.provider == "llama.cpp"
    assert model.info.name.startswith("SmolLM2")
    assert (model.info.context or 0) >= 1024
    got = await outcome(model, ask("Say hello with an emoji."))
    assert got.failed is None
    assert got.text.strip()
    assert got.batches > 3
    assert got.usage[0].output_tokens > 3
    assert got.finish_reason in ("stop", "length")


async def test_it_goes_on_from_a_prefilled_answer(model: Model) -> None:
    """Continuing an interrupted answer repeats nothing of it."""
    assert "prefill" in model.info.abilities
    got = await outcome(model, PREFILLED)
    assert "Paris" in got.text
    assert "capital" not in got.text


async def test_a_conversation_that_is_too_long(model: Model) -> None:
    """The server's words are understood as what they mean."""
    assert (await outcome(model, ask(LONG * 2))).code == "context-length"


async def test_cancel_frees_the_server(model: Model) -> None:
    """C7: the slot of an answer that was given up is free for the next, long before it would have ended."""
    with anyio.CancelScope() as scope:
        async with model.stream(ask("A very long story.", max_tokens=900)) as answer:
            async for _ in answer:
                scope.cancel()
    assert (await outcome(model, ask("Hi", max_tokens=3))).text
