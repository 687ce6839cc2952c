"""Every case of the hostile table, over a real socket, at the level of the model port."""

import pytest

from holdfast.core.events import ToolDelta
from tests.models.asking import KEY, Naps, client, outcome
from tests.models.hostile import CASES, Case
from tests.upstream import upstream

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_hostile_upstream_has_the_right_outcome(case: Case) -> None:
    """E1: whatever an upstream does, what it said before is kept and the failure is one that a person can act on."""
    naps = Naps()
    async with upstream(*case.scripts) as up, client(up, naps, **case.policy) as model:
        got = await outcome(model)
        assert len(up.exchanges) == case.requests
    code = got.failed.code if got.failed else None
    assert (got.text, got.reasoning, code) == (case.text, case.reasoning, case.code), got
    if got.failed is not None:
        sentence = str(got.failed)
        assert all(words in sentence for words in case.says), sentence
        assert (sentence.endswith(".") and "Testing" in sentence) or "test-model" in sentence
        assert KEY not in sentence
        assert "object at 0x" not in sentence
        return
    assert got.finish_reason == case.finish
    assert [(u.input_tokens, u.output_tokens) for u in got.usage] == ([case.usage] if case.usage else [])
    assert [(c.call_id, c.name, c.args) for c in got.calls] == [(c.call_id, c.name, c.args) for c in case.calls]
    assert [c.invalid is None for c in got.calls] == [c.valid for c in case.calls]
    if case.slept is not None:
        assert tuple(naps.slept) == case.slept
    written = [d for d in got.deltas if isinstance(d, ToolDelta)]
    assert {d.call_id for d in written} == {c.call_id for c in case.calls}


def test_case_names_differ() -> None:
    """A case can be named in a report."""
    assert len({case.name for case in CASES}) == len(CASES) >= 30
