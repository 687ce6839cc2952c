"""Journals as events and chunks: the same on every replay, wherever it is cut, and the same answer as the fold has."""

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.core import events as ev
from holdfast.core.ids import MessageId, RunId, SessionId
from holdfast.core.parts import Text
from holdfast.core.transcript import fold
from holdfast.faces.openai import chunks, frames, output
from holdfast.faces.openai.chunks import ChatChunks
from holdfast.faces.openai.events import ResponseEvents
from tests import strategies

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""The machine may be busy."""
RUN = RunId("run_1")
BASE = frames.dump({"id": "resp_1", "object": "response"})
CHAT = chunks.about("chatcmpl-1", 1, "some/model", "chat.completion.chunk")
STARTED = ev.RunStarted(RUN, SessionId("ses_1"), MessageId("msg_2"), MessageId("msg_1"), "some/model", "direct")


def read(sent: Sequence[bytes]) -> list[Any]:
    """What a client makes of the frames."""
    found = []
    for frame in sent:
        head, _, data = frame.partition(b"data: ")
        told = json.loads(data)
        assert frame.endswith(b"\n\n")
        assert frame.count(b"\n") == (3 if head else 2)
        if head:
            assert head == f"event: {told['type']}\n".encode()
        found.append(told)
    return found


def translated(entries: Sequence[ev.Entry], cuts: Sequence[int], *, own_tools: bool) -> list[bytes]:
    events = ResponseEvents(RUN, BASE, queued=False, own_tools=own_tools)
    sent, before = events.open(), 0
    for cut in [*sorted(cuts), len(entries)]:
        sent += events.feed(entries[before:cut])
        before = cut
    assert events.number == len(sent)
    return sent


@unhurried
@given(strategies.journals(), st.integers(-1, 60))
def test_resuming_gives_exactly_the_rest(entries: list[ev.Entry], after: int) -> None:
    """L5: from any number on, the events are those of the whole, without what the client has."""
    events = ResponseEvents(RUN, BASE, queued=False, own_tools=False, after=after)
    rest = events.open() + [frame for entry in entries for frame in events.feed([entry])]
    assert rest == translated(entries, [], own_tools=False)[after + 1 :]


def chunked(entries: Sequence[ev.Entry], cuts: Sequence[int], *, own_tools: bool) -> list[bytes]:
    translator = ChatChunks(CHAT, include_usage=True, own_tools=own_tools)
    sent: list[bytes] = []
    before = 0
    for cut in [*sorted(cuts), len(entries)]:
        sent += translator.feed(entries[before:cut])
        before = cut
    return sent


@unhurried
@given(strategies.journals(), st.lists(st.integers(0, 40), max_size=5), st.booleans())
def test_events_are_the_same_wherever_the_journal_is_cut(entries: list[ev.Entry], cuts: list[int], own: bool) -> None:
    """L5: numbers and ids come from the journal alone, without a gap, and every replay gives the same bytes."""
    cuts = [min(cut, len(entries)) for cut in cuts]
    whole = translated(entries, [], own_tools=own)
    assert translated(entries, cuts, own_tools=own) == whole
    assert translated(entries, range(len(entries)), own_tools=own) == whole
    assert [event["sequence_number"] for event in read(whole)] == list(range(len(whole)))


@unhurried
@given(strategies.journals(), st.lists(st.integers(0, 40), max_size=5), st.booleans())
def test_chunks_are_the_same_wherever_the_journal_is_cut(entries: list[ev.Entry], cuts: list[int], own: bool) -> None:
    """L5: the same for a chat, whose end is its last chunk."""
    cuts = [min(cut, len(entries)) for cut in cuts]
    whole = chunked(entries, [], own_tools=own)
    assert chunked(entries, cuts, own_tools=own) == whole
    read([chunk for chunk in whole if chunk != chunks.DONE])
    assert whole.count(chunks.DONE) == (1 if entries and entries[-1].type == "run.complete" else 0)


words = strategies.texts(max_size=6)


@st.composite
def answers(draw: st.DrawFn) -> list[ev.Entry]:
    """Journals as a model alone writes them: words, thoughts and calls of the client's functions, and an end."""
    told: list[ev.Event] = [STARTED, ev.StepStarted(0)]
    for n in range(draw(st.integers(0, 6))):
        match draw(st.sampled_from(["text", "thought", "signed", "call", "usage"])):
            case "text":
                told += [ev.TextDelta(text) for text in draw(st.lists(words, max_size=3))]
            case "thought":
                told += [ev.ReasoningDelta(text) for text in draw(st.lists(words, max_size=3))]
            case "signed":
                told.append(ev.ReasoningDelta(draw(words), {"signature": draw(words)}))
            case "call":
                args = json.dumps({"q": draw(words)})
                cut = draw(st.integers(0, len(args)))
                told += [ev.ToolDelta(f"call_{n}", "look", args[:cut]), ev.ToolDelta(f"call_{n}", None, args[cut:])]
            case _:
                told.append(ev.Usage(n, 2 * n))
    told.append(draw(strategies.endings()))
    return strategies.numbered(told)


@unhurried
@given(answers())
def test_the_last_event_has_what_the_fold_has(entries: list[ev.Entry]) -> None:
    """C8: a response that was followed ends with the same output, under the same ids, as one that is looked up."""
    told, last = fold(entries), read(translated(entries, [], own_tools=False))[-1]["response"]
    complete = told.status == "complete"
    found = output.items(RUN, told.parts, complete=complete, own_tools=False)
    how = frames.outcome(told.status, told.reason, told.finish_reason, told.error, told.usage)
    assert last == json.loads(frames.response(BASE, how, found))


@unhurried
@given(answers())
def test_deltas_add_up_to_the_items(entries: list[ev.Entry]) -> None:
    """C8: whoever joins the deltas of an item has its text."""
    joined: defaultdict[str, str] = defaultdict(str)
    sent = read(translated(entries, [], own_tools=False))
    for event in sent:
        if event["type"].endswith(".delta"):
            joined[event["item_id"]] += event["delta"]
    for item in sent[-1]["response"]["output"]:
        match item["type"]:
            case "message":
                text = item["content"][0]["text"]
            case "reasoning":
                text = item["summary"][0]["text"]
            case _:
                text = item["arguments"]
        assert joined[item["id"]] == text


@unhurried
@given(answers())
def test_chunks_add_up_to_the_completion(entries: list[ev.Entry]) -> None:
    """C8: whoever joins the chunks has the text, the thoughts and the calls of the whole completion."""
    told = fold(entries)
    sent = [chunk for chunk in chunked(entries, [], own_tools=False) if chunk != chunks.DONE]
    deltas = [chunk["choices"][0]["delta"] for chunk in read(sent) if chunk.get("choices")]
    text = "".join(delta.get("content") or "" for delta in deltas)
    assert text == "".join(part.text for part in told.parts if isinstance(part, Text))
    whole = json.loads(chunks.whole(CHAT, told, own_tools=False))["choices"][0]["message"]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == whole.get("reasoning_content", "")
    written: defaultdict[int, str] = defaultdict(str)
    for delta in deltas:
        for call in delta.get("tool_calls", ()):
            written[call["index"]] += call["function"]["arguments"]
    assert list(written.values()) == [call["function"]["arguments"] for call in whole.get("tool_calls", ())]


def test_tools_of_an_agent_are_shown_as_the_servers_own() -> None:
    """A client never sees a call of ours as one that it would have to answer."""
    entries = strategies.numbered(
        [
            STARTED,
            ev.TextDelta("Looking. "),
            ev.ToolDelta("c1", "search", '{"q":'),
            ev.ToolDelta("c1", None, '"tide"}'),
            ev.ToolStarted("c1", "search", {"q": "tide"}),
            ev.ToolFinished("c1", "at six"),
            ev.TextDelta("At six."),
            ev.RunEnded("complete"),
        ]
    )
    sent = read(translated(entries, [], own_tools=True))
    final = sent[-1]["response"]["output"]
    assert [item["type"] for item in final] == ["message", "mcp_call", "message"]
    assert (final[1]["output"], final[1]["status"]) == ("at six", "completed")
    assert json.loads(final[1]["arguments"]) == {"q": "tide"}
    assert "response.mcp_call.completed" in [event["type"] for event in sent]
    told = fold(entries)
    assert final == [json.loads(item) for item in output.items(RUN, told.parts, complete=True, own_tools=True)]
    said = chunked(entries, [], own_tools=True)
    assert b"tool_calls" not in b"".join(said)
    assert json.loads(chunks.whole(CHAT, told, own_tools=True))["choices"][0]["message"]["content"] == (
        "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in read(said[:-1]) if chunk["choices"])
    )


@pytest.mark.parametrize(
    ("ending", "kind", "status"),
    [
        (ev.RunEnded("complete", finish_reason="length"), "response.incomplete", "incomplete"),
        (ev.RunEnded("cancelled", "requested"), "response.incomplete", "cancelled"),
        (ev.RunEnded("failed", error=ev.Failure("rate-limit", "Slow down.")), "response.failed", "failed"),
        (ev.RunEnded("interrupted", "shutdown"), "response.failed", "failed"),
    ],
)
def test_every_ending_is_told(ending: ev.RunEnded, kind: str, status: str) -> None:
    """However a run ends, the last event says so, with what was said so far marked as cut off."""
    last = read(translated(strategies.numbered([STARTED, ev.TextDelta("Half"), ending]), [], own_tools=False))[-1]
    assert (last["type"], last["response"]["status"]) == (kind, status)
    cut = "completed" if ending.status == "complete" else "incomplete"
    assert [item["status"] for item in last["response"]["output"]] == [cut]
