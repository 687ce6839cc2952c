"""What a program may claim: each value is checked before it is kept. No process is needed."""

import json
from pathlib import Path

import pytest

from holdfast.agents.acp.session_links import AgentStateFiles
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
    usage, reported = turn_usage(counts, None, None)
    assert reported == [0, 0, 2**40, 0]
    assert usage is not None
    assert json.loads(json.dumps([usage.input_tokens, usage.output_tokens, usage.cached_tokens])) == [0, 0, 2**40]
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
