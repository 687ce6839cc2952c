"""Journals as events and chunks: the same in every replay, however it is divided, and the same output as the fold."""

import json
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.core import events as ev
from holdfast.core.ids import MessageId, RunId, SessionId
from holdfast.core.parts import TextPart
from holdfast.core.transcript import fold
from holdfast.server.openai import chat_chunks, response_object
from holdfast.server.openai.chat_chunks import ChatChunks
from holdfast.server.openai.json_bytes import dump
from holdfast.server.openai.response_events import ResponseEvents
from holdfast.server.openai.translator import Translator
from tests import strategies

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""The machine may be busy."""
RUN = RunId("run_1")
BASE = dump({"id": "resp_1", "object": "response"})
CHAT = dump({"id": "chatcmpl-1", "object": "chat.completion.chunk"})
STARTED = ev.RunStarted(RUN, SessionId("ses_1"), MessageId("msg_2"), MessageId("msg_1"), "some/model", "direct")


def read(sent: Sequence[bytes]) -> list[Any]:
    """The frames, parsed as a client does."""
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


def fed(translator: Translator, entries: Sequence[ev.Entry], cuts: Sequence[int]) -> list[bytes]:
    """What it returns for the entries, divided at the cuts."""
    places = [0, *sorted(min(cut, len(entries)) for cut in cuts), len(entries)]
    return [frame for start, end in pairwise(places) for frame in translator.feed(entries[start:end])]


def translated(entries: Sequence[ev.Entry], cuts: Sequence[int] = (), *, server_tools: bool) -> list[bytes]:
    events = ResponseEvents(RUN, BASE, queued=False, server_tools=server_tools)
    sent = events.open() + fed(events, entries, cuts)
    assert events.number == len(sent)
    return sent


@unhurried
@given(strategies.journals(), st.integers(-1, 60))
def test_resuming_gives_exactly_the_rest(entries: list[ev.Entry], after: int) -> None:
    """L5: the events after a number are those of the whole stream."""
    events = ResponseEvents(RUN, BASE, queued=False, server_tools=False, after=after)
    rest = events.open() + [frame for entry in entries for frame in events.feed([entry])]
    assert rest == translated(entries, server_tools=False)[after + 1 :]


def chunked(entries: Sequence[ev.Entry], cuts: Sequence[int] = (), *, server_tools: bool) -> list[bytes]:
    return fed(ChatChunks(CHAT, include_usage=True, server_tools=server_tools), entries, cuts)


@unhurried
@given(strategies.journals(), st.lists(st.integers(0, 40), max_size=5), st.booleans())
def test_frames_are_the_same_however_the_journal_is_divided(
    entries: list[ev.Entry], cuts: list[int], own: bool
) -> None:
    """L5: numbers and ids are derived from the journal, without a gap: every replay gives the same bytes. A chat
    completion ends with `[DONE]` if the run is complete."""
    for translate in (translated, chunked):
        whole = translate(entries, server_tools=own)
        assert translate(entries, cuts, server_tools=own) == whole
        assert translate(entries, range(len(entries)), server_tools=own) == whole
    events = read(translated(entries, server_tools=own))
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    chunks = chunked(entries, server_tools=own)
    read([chunk for chunk in chunks if chunk != chat_chunks.DONE])
    assert chunks.count(chat_chunks.DONE) == (1 if entries and entries[-1].type == "run.complete" else 0)


words = strategies.texts(max_size=6)


@st.composite
def answers(draw: st.DrawFn) -> list[ev.Entry]:
    """Journals of a model alone: text, reasoning, calls of the client's functions, and an end."""
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
def test_the_last_event_agrees_with_the_fold(entries: list[ev.Entry]) -> None:
    """C8: a streamed response ends with the same output, under the same ids, as a retrieved one."""
    told, last = fold(entries), read(translated(entries, server_tools=False))[-1]["response"]
    complete = told.status == "complete"
    found = response_object.render_parts(RUN, told.parts, complete=complete, server_tools=False)
    how = response_object.status_of_ended(told, told.usage)
    assert last == json.loads(response_object.render(BASE, how, found))


@unhurried
@given(answers())
def test_deltas_add_up_to_the_items(entries: list[ev.Entry]) -> None:
    """C8: the joined deltas of an item are its text."""
    joined: defaultdict[str, str] = defaultdict(str)
    sent = read(translated(entries, server_tools=False))
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
    """C8: the joined chunks have the text, the reasoning and the calls of the whole completion."""
    told = fold(entries)
    sent = [chunk for chunk in chunked(entries, server_tools=False) if chunk != chat_chunks.DONE]
    deltas = [chunk["choices"][0]["delta"] for chunk in read(sent) if chunk.get("choices")]
    text = "".join(delta.get("content") or "" for delta in deltas)
    assert text == "".join(part.text for part in told.parts if isinstance(part, TextPart))
    whole = json.loads(chat_chunks.render_completion(CHAT, told, server_tools=False))["choices"][0]["message"]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == whole.get("reasoning_content", "")
    written: defaultdict[int, str] = defaultdict(str)
    for delta in deltas:
        for call in delta.get("tool_calls", ()):
            written[call["index"]] += call["function"]["arguments"]
    assert list(written.values()) == [call["function"]["arguments"] for call in whole.get("tool_calls", ())]


def test_tools_of_an_agent_are_shown_as_calls_of_the_server() -> None:
    """A client never sees a call of the server's tools as one that it has to answer."""
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
    sent = read(translated(entries, server_tools=True))
    final = sent[-1]["response"]["output"]
    assert [item["type"] for item in final] == ["message", "mcp_call", "message"]
    assert (final[1]["output"], final[1]["status"]) == ("at six", "completed")
    assert json.loads(final[1]["arguments"]) == {"q": "tide"}
    assert "response.mcp_call.completed" in [event["type"] for event in sent]
    told = fold(entries)
    assert final == [
        json.loads(item) for item in response_object.render_parts(RUN, told.parts, complete=True, server_tools=True)
    ]
    said = chunked(entries, server_tools=True)
    assert b"tool_calls" not in b"".join(said)
    text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in read(said[:-1]) if chunk["choices"])
    whole = json.loads(chat_chunks.render_completion(CHAT, told, server_tools=True))
    assert whole["choices"][0]["message"]["content"] == text


@pytest.mark.parametrize(
    ("ending", "kind", "status"),
    [
        (ev.RunEnded("complete", finish_reason="length"), "response.incomplete", "incomplete"),
        (ev.RunEnded("cancelled", "requested"), "response.incomplete", "cancelled"),
        (ev.RunEnded("failed", error=ev.Failure("rate-limit", "Slow down.")), "response.failed", "failed"),
        (ev.RunEnded("interrupted", "shutdown"), "response.failed", "failed"),
    ],
)
def test_the_last_event_has_the_ending(ending: ev.RunEnded, kind: str, status: str) -> None:
    """The last event has the status of the run, and text that was cut off is incomplete."""
    last = read(translated(strategies.numbered([STARTED, ev.TextDelta("Half"), ending]), server_tools=False))[-1]
    assert (last["type"], last["response"]["status"]) == (kind, status)
    cut = "completed" if ending.status == "complete" else "incomplete"
    assert [item["status"] for item in last["response"]["output"]] == [cut]
