"""What a program may claim: each value is checked before it is kept. No process is needed."""

import json
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from holdfast.agents.acp.inbox import SessionUpdate, TurnInbox
from holdfast.agents.acp.stored_state import AgentStateFiles
from holdfast.agents.acp.transport import LineTransport
from holdfast.agents.acp.updates import UpdateTranslator, turn_usage


@pytest.mark.parametrize(
    "amount", [10**400, 10**9, -1, True, "1", None, float("nan"), float("inf")], ids=lambda v: str(v)[:12]
)
def test_an_impossible_cost_is_ignored(amount: object) -> None:
    """X5: a cost that is no amount of money changes nothing, and a later one is taken."""
    translator = UpdateTranslator(lambda: 0.0)
    assert translator.translate({"sessionUpdate": "usage_update", "cost": {"amount": amount}}) == []
    assert translator.cost is None
    translator.translate({"sessionUpdate": "usage_update", "cost": {"amount": 2}})
    assert translator.cost == 2.0


def test_impossible_token_counts_are_ignored() -> None:
    """X5: what a program cannot have used is not stored, so that an export of the run can be imported again."""
    counts = {"inputTokens": 10**30, "outputTokens": True, "cachedReadTokens": 2**40, "thoughtTokens": -1}
    usage, reported = turn_usage(counts, [0, 0, 0, 0], None, adds_up=False)
    assert reported == [0, 0, 2**40, 0]
    assert usage is not None
    assert json.loads(json.dumps([usage.input_tokens, usage.output_tokens, usage.cached_tokens])) == [0, 0, 0]
    translator = UpdateTranslator(lambda: 0.0)
    translator.translate({"sessionUpdate": "usage_update", "used": 1, "size": 10**30})
    assert translator.context is None


@pytest.mark.anyio
async def test_stored_options_with_half_characters_can_be_read(tmp_path: Path) -> None:
    """X5: a file that an earlier version stored does not make the options of an agent unreadable."""
    option = {"id": "o", "name": "n\ud800", "value": True, "choices": [], "category": "", "method": "config"}
    (tmp_path / "a.agent-state.json").write_text(json.dumps({"options": [option], "commands": []}))
    (read,) = (await AgentStateFiles(tmp_path).read("a")).options
    assert read.name == "n\ufffd"


class Lines:
    """What a program wrote."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = [*pieces]

    async def receive(self, max_bytes: int = 65536) -> bytes:
        if not self._pieces:
            raise anyio.EndOfStream
        return self._pieces.pop(0)


@pytest.mark.anyio
@pytest.mark.parametrize("half", [rb"\ud800", rb"\uDFFF", b"\xed\xa0\x80"], ids=["escaped", "large", "as bytes"])
async def test_half_characters_do_not_get_in(half: bytes) -> None:
    """L6: no text has what UTF-8 cannot carry, however it was written; whole characters are kept."""
    line = b'{"method": "x", "params": {"text": "\xed\x95\x9c' + half + b'"}}\n'
    transport = LineTransport(Lines(line), None, 1_000, anyio.lowlevel.checkpoint, anyio.Event())  # type: ignore[arg-type]
    message = await transport.receive()
    assert message is not None
    text = message["params"]["text"]
    assert text.encode().decode() == text
    assert text.startswith("\N{HANGUL SYLLABLE HAN}")


def test_a_call_shows_so_many_terminals() -> None:
    """L6: names of terminals are not collected without end."""
    translator = UpdateTranslator(lambda: 0.0)
    for n in range(3):
        shown = [{"type": "terminal", "terminalId": f"{n}-{each}"} for each in range(15)]
        translator.translate({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "T", "content": shown})
    printed = [
        f"{n}-{each}" for n in range(3) for each in range(15) if translator.add_terminal_output(f"{n}-{each}", "x")
    ]
    assert len(printed) == 20


@pytest.mark.anyio
async def test_many_waiting_updates_let_everything_else_run() -> None:
    """L6: a full queue is emptied with pauses."""
    inbox, turns = TurnInbox(1_000), 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    for _ in range(1_000):
        inbox.put(SessionUpdate({}))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(count_turns)
        for _ in range(1_000):
            await inbox.get()
        tasks.cancel_scope.cancel()
    assert turns > 30
