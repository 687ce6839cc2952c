"""The local model: the real one, in its own process."""

import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from holdfast.core.events import TextDelta
from holdfast.core.parts import TextPart
from holdfast.models import local_model_weights
from holdfast.models.local_model import LocalModel, LocalModelError, LocalModelProcess, LocalModelSettings
from holdfast.models.local_model_prompt import body, shortened
from holdfast.models.local_model_worker import BATCH
from holdfast.ports.model import AssistantMessage, ChatMessage, ModelRequest, ToolMessage, UserMessage
from tests.models.asking import outcome
from tests.upstream import GUARD

WEIGHTS = local_model_weights.find(local_model_weights.default_directory(os.environ, Path.home()))
needs_weights = pytest.mark.skipif(WEIGHTS is None, reason="the weights are not here: holdfast models pull")
pytestmark = pytest.mark.anyio
PREFILLED = ModelRequest(
    None,
    (UserMessage(("What is the capital of France?",)), AssistantMessage((TextPart("The capital of France is"),))),
    settings={"temperature": 0, "max_tokens": 4},
)
LONG = "Once upon a time there was a fox. " * 150


def ask(text: str, **settings: object) -> ModelRequest:
    return ModelRequest(None, (UserMessage((text,)),), settings={"seed": 7, "max_tokens": 24, **settings})


@pytest.fixture(scope="module")
async def model() -> AsyncIterator[LocalModel]:
    if WEIGHTS is None:
        pytest.skip("the weights are not here: holdfast models pull")
    local = LocalModel(LocalModelSettings(WEIGHTS, context=2048))
    yield local
    await local.aclose()


async def test_it_answers(model: LocalModel) -> None:
    """Text in pieces, whole characters, usage, and why it stopped."""
    got = await outcome(model, ask("Say hello to the world with an emoji."))
    assert got.failed is None
    assert got.text.strip()
    assert "\ufffd" not in got.text
    assert got.batches > 1
    assert got.finish_reason in ("stop", "length")
    assert got.usage[0].input_tokens > 5
    assert got.usage[0].output_tokens <= 25


async def test_it_goes_on_from_its_own_words(model: LocalModel) -> None:
    """A prefilled answer is continued, not repeated."""
    got = await outcome(model, PREFILLED)
    assert "Paris" in got.text
    assert "capital" not in got.text


async def test_cancel_in_mid_answer_stops_the_computation(model: LocalModel) -> None:
    """C7: the answer that nobody wants is not computed to its end, and the next question is answered."""
    with anyio.fail_after(GUARD), anyio.CancelScope() as scope:
        async with model.stream(ask("Tell me a very long story.", max_tokens=2000)) as answer:
            async for deltas in answer:
                assert isinstance(deltas[0], TextDelta)
                scope.cancel()
    pid = model.process.pid
    got = await outcome(model, ask("Hi"))
    assert got.text
    assert model.process.pid == pid


@needs_weights
async def test_cancel_while_it_reads_stops_within_a_batch() -> None:
    """C7: a long prompt is not read to its end: at most the batch under way and one that was already reported."""
    process = LocalModelProcess(LocalModelSettings(WEIGHTS or Path("none"), context=2048))
    try:
        with anyio.fail_after(GUARD):
            chunk = await process.ask(body(ask(LONG)))
            assert chunk is not None
            total, read = chunk["prompt_progress"]["total"], [chunk["prompt_progress"]["processed"]]
            while read[-1] < BATCH and (chunk := await process.chunk()) is not None:
                read.append(chunk["prompt_progress"]["processed"])
            await process.cancel()
            cancelled_at = read[-1]
            while (chunk := await process.chunk()) is not None:
                read.append(chunk["prompt_progress"]["processed"])
    finally:
        await process.aclose()
    assert read[-1] <= cancelled_at + 2 * BATCH
    assert read[-1] < total - 4 * BATCH


async def test_two_at_once_take_turns(model: LocalModel) -> None:
    """Who comes second waits for the first, also when the first is given up in the middle."""
    answered: list[str] = []

    async def second() -> None:
        answered.append((await outcome(model, ask("Hi"))).text)

    with anyio.fail_after(GUARD):
        async with anyio.create_task_group() as group, model.stream(ask("A long story.", max_tokens=2000)) as answer:
            group.start_soon(second)
            async for _ in answer:
                break
            assert answered == []
    assert answered[0]


async def test_a_bad_question_is_one_failed_answer(model: LocalModel) -> None:
    """A setting that makes no sense fails that answer, with the library's reason, and the process goes on."""
    got = await outcome(model, ask("Hi", temperature="hot"))
    assert got.code == "bad-request"
    pid = model.process.pid
    assert (await outcome(model, ask("Hi"))).text
    assert model.process.pid == pid


async def test_a_dead_process_is_one_failed_answer(model: LocalModel) -> None:
    """Native code that takes its process with it costs an answer, and the next one is given by another process."""
    with anyio.fail_after(GUARD):
        async with model.stream(ask("Tell me a long story.", max_tokens=2000)) as answer:
            with pytest.raises(Exception, match="could not answer"):  # noqa: PT012  the kill is part of what is tested
                async for _ in answer:
                    os.kill(model.process.pid or 0, signal.SIGKILL)
    assert (await outcome(model, ask("Hi"))).text


async def test_old_turns_are_left_out(model: LocalModel) -> None:
    """A conversation that has outgrown the context is answered from its newest turns."""
    old = [m for _ in range(4) for m in (UserMessage((LONG,)), AssistantMessage((TextPart("I see."),)))]
    request = ModelRequest("Be brief.", (*old, UserMessage(("Say hi.",))), settings={"max_tokens": 8})
    got = await outcome(model, request)
    assert got.failed is None
    assert 0 < got.usage[0].input_tokens < 2048


async def test_a_question_that_is_too_long_says_so(model: LocalModel) -> None:
    """Nothing can be left out of one question."""
    got = await outcome(model, ask(LONG * 4))
    assert got.code == "context-length"
    assert "2048 tokens" in str(got.failed)


async def test_weights_that_are_none(tmp_path: Path) -> None:
    """A broken file is a failed answer with a reason, not a dead server."""
    (tmp_path / "w.gguf").write_bytes(b"GGUF nonsense")
    model = LocalModel(LocalModelSettings(tmp_path / "w.gguf"))
    got = await outcome(model, ask("Hi"))
    await model.aclose()
    assert got.code == "unavailable"


@needs_weights
async def test_the_process_ends_with_its_parent() -> None:
    """A parent that was killed leaves nothing running, also in mid-answer: its end of the pipe closes."""
    settings = LocalModelSettings(WEIGHTS or Path("none"), context=2048)
    process = await anyio.open_process([*settings.command, settings.arguments()], stderr=subprocess.DEVNULL)
    assert process.stdin is not None
    assert process.stdout is not None
    question = {"id": 1, "ask": body(ask("Tell me a long story.", max_tokens=2000))}
    with anyio.fail_after(GUARD):
        await process.stdin.send(json.dumps(question).encode() + b"\n")
        got = b""
        while b'"content"' not in got:
            got += await process.stdout.receive()
        await process.stdin.aclose()
        await process.wait()
    await process.aclose()


async def test_a_process_that_ended_in_between_is_replaced(model: LocalModel) -> None:
    """Memory given back after an idle while, or a process that somebody ended, costs nobody an answer."""
    assert (await outcome(model, ask("Hi"))).text
    before = model.process.pid
    os.kill(before or 0, signal.SIGKILL)
    got = await outcome(model, ask("Hi"))
    assert got.text
    assert model.process.pid != before


@needs_weights
async def test_an_idle_process_gives_its_memory_back() -> None:
    """It ends by itself when nobody asks, and is started again by the next question."""
    process = LocalModelProcess(LocalModelSettings(WEIGHTS or Path("none"), context=256, idle=1.0))
    with anyio.fail_after(GUARD):
        await process.ask(body(ask("Hi", max_tokens=1)))
        while await process.chunk() is not None:
            pass
        with pytest.raises(LocalModelError, match="code 0"):
            await process.chunk()
    await process.aclose()


def test_turns_are_dropped_whole_and_oldest_first() -> None:
    """A turn is what a person said and all that came of it; the newest is never dropped."""
    turns: list[ChatMessage] = [
        UserMessage(("x" * 900,)),
        AssistantMessage((TextPart("y" * 900),)),
        ToolMessage("c", "look", "z" * 90),
    ]
    request = ModelRequest(None, (*turns, *turns, UserMessage(("new",))))
    assert shortened(request, None, 10_000) == request
    one_less = shortened(request, None, 900)
    assert one_less is not None
    assert len(one_less.messages) == 4
    forced = shortened(one_less, 5000, 900)
    assert forced is not None
    assert forced.messages == (UserMessage(("new",)),)
    assert shortened(forced, 5000, 900) is None


def test_what_it_is_told_is_plain_text() -> None:
    """Tools and their answers become words."""
    said = (UserMessage(("See", "this")), AssistantMessage((TextPart("Yes."),)), ToolMessage("c", "look", "sunny"))
    messages = body(ModelRequest(None, said))["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant", "user"]
    assert messages[0]["content"] == "See\n\nthis"
    assert "sunny" in messages[2]["content"]
