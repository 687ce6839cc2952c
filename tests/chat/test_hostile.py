"""Every case of the hostile table as a whole run: a real server, its real agent, a real socket to the upstream."""

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import pytest

from tests.chat.conftest import settings
from tests.chat.model_server import KEY, PROVIDER, ScriptedModelServer
from tests.fork_server import ServerForker
from tests.http.client import Served
from tests.http.streams import said
from tests.models.hostile import CASES, Case
from tests.models.hostile_case import OK
from tests.upstream import Chunk, Forever, Hang, PauseAt, Raw, Script


def _run_case(case: Case) -> Case:
    """What becomes of a case when the agent goes on with it: it answers calls and asks again, takes an answer without
    a word for a failure, and compacts once when the context is full."""
    if case.calls:
        return replace(case, scripts=(*case.scripts, OK), text=case.text + "All good", requests=2, finish="stop")
    if case.code is None and not case.text:
        return replace(case, code="empty-answer", says=("returned an empty answer",))
    if case.code == "context-length" and not case.text:
        return replace(case, requests=2)
    if case.code is not None and case.text:
        return replace(case, scripts=tuple(_shown_first(case.name, script) for script in case.scripts))
    return case


def _shown_first(name: str, script: Script) -> Script:
    """Words that arrive together with a reset may be lost in the network, and nobody was shown them. Here they are
    shown before it gets worse."""
    at = next(n for n, step in enumerate(script) if isinstance(step, Chunk | Raw))
    return [*script[: at + 1], PauseAt(name), *script[at + 1 :]]


RUNS = tuple(_run_case(case) for case in CASES)


@pytest.fixture(scope="module")
def impatient(
    tmp_path_factory: pytest.TempPathFactory, chat_forker: ServerForker, up: ScriptedModelServer
) -> Iterator[Served]:
    """One server for all cases, with each case's own limits for its model."""
    tuned = {case.name: _plain(case.policy) for case in RUNS if case.policy}
    directory = tmp_path_factory.mktemp("hostile") / "data"
    with Served(chat_forker, directory, **settings(up, tuned=tuned)) as served:
        yield served.ready()


def _plain(changes: Any) -> dict[str, Any]:
    return {name: asdict(value) if name == "timeouts" else value for name, value in changes.items()}


@pytest.mark.parametrize("case", RUNS, ids=lambda case: case.name)
def test_run_at_a_hostile_upstream_ends_well(case: Case, impatient: Served, up: ScriptedModelServer) -> None:
    """E1 E2 E4: the run ends with the right status, keeps what was said, tells a person once what to do, leaves nothing
    open behind it, and its session goes on."""
    model = up.play(case.name, *case.scripts)
    sid = impatient.session(title="A person's")
    rid = impatient.begin(sid, "Hello", model=model)
    if case.code is not None and case.text:
        with impatient.watch(rid) as stream:
            stream.until("text.delta")
        up.let(case.name)
    run = impatient.ended(rid)
    question, answer = impatient.messages(sid)
    status = "complete" if case.code is None else "failed"
    assert (run["status"], answer["status"], said(question)) == (status, status, "Hello"), (run["error"], answer)
    assert (said(answer), said(answer, "reasoning")) == (case.text, case.reasoning)
    _check_calls(case, answer)
    frames = impatient.events(rid)
    ends = [frame for frame in frames if frame.event in ("run.complete", "run.failed")]
    assert [frame.event for frame in ends] == [f"run.{status}"]
    assert up.count(case.name) == case.requests
    if case.code is None:
        assert answer["error"] is None
        assert ends[0].data.get("finish_reason") == case.finish
        assert _usage(run) == case.usage
    else:
        _check_notice(case, run, answer)
    if isinstance(case.scripts[-1][-1], Hang | Forever):
        up.closed(case.name, case.requests)
    assert said(impatient.turn(sid, "And now?")) == "Fine."


def _check_notice(case: Case, run: Any, answer: Any) -> None:
    assert run["error"] == answer["error"]
    sentence = answer["error"]["message"]
    assert answer["error"]["code"] == case.code, sentence
    assert all(words in sentence for words in case.says), sentence
    assert sentence.endswith(".")
    assert KEY not in sentence
    if case.code != "empty-answer":
        assert PROVIDER in sentence or case.name in sentence


def _check_calls(case: Case, answer: Any) -> None:
    tools = [part for part in answer["parts"] if part["type"] == "tool"]
    assert [(part["call_id"], part["name"]) for part in tools] == [(call.call_id, call.name) for call in case.calls]
    for part, call in zip(tools, case.calls, strict=True):
        # There are no tools of these names: nothing was started, so the arguments stay as the model wrote them.
        assert part["args"] == call.args or _read(part["args"]) == call.args
        assert (part["state"], part["is_error"]) == ("done", True)


def _read(args: Any) -> Any:
    while isinstance(args, str):
        args = json.loads(args)
    return args


def _usage(run: Any) -> tuple[int, int] | None:
    usage = run["usage"]
    return None if usage is None else (usage["input_tokens"], usage["output_tokens"])
