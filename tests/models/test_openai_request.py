"""What a request looks like on the wire, and when it is sent again."""

import json
from typing import Any

import pytest

from holdfast.core.parts import ReasoningPart, TextPart
from holdfast.models import openai_request
from holdfast.models.dialects import DIALECTS, GENERIC, ChatDialect
from holdfast.models.request_policy import RequestPolicy, parse_retry_after
from holdfast.models.upstream_errors import UpstreamError
from holdfast.ports.model import AssistantMessage, Media, ModelRequest, ToolCall, ToolMessage, ToolSpec, UserMessage

PDF = Media("a.pdf", "application/pdf", b"%PDF")
PNG = Media("a.png", "image/png", b"\x89PNG")
CALL = ToolCall("call_1", "look", {"where": "Łódź"}, {"extra_content": {"google": {"thought_signature": "s"}}})
TURN = (
    UserMessage(("Hi",)),
    AssistantMessage((ReasoningPart("Hm."), TextPart("Let me look."), CALL)),
    ToolMessage("call_1", "look", "sunny"),
)


def body(request: ModelRequest, dialect: ChatDialect = GENERIC) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(openai_request.body(request, "m", dialect))
    return data


def test_a_conversation_with_a_tool() -> None:
    """System, question, call and answer are in the form and the order that servers know."""
    spec = ToolSpec("look", "Looks.", {"type": "object", "properties": {}})
    data = body(ModelRequest("Be kind.", TURN, (spec,), {"temperature": 0.5, "unknown": 1}))
    assert data["messages"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "look", "arguments": '{"where":"Łódź"}'},
                    "extra_content": {"google": {"thought_signature": "s"}},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
    ]
    assert data["tools"][0]["function"]["name"] == "look"
    assert (data["temperature"], data["stream"], "unknown" in data) == (0.5, True, False)
    assert data["stream_options"] == {"include_usage": True}


def test_reasoning_goes_back_where_it_is_wanted() -> None:
    """Only in the turn that is under way, and only to servers that ask for it; signed blocks always."""
    later = (*TURN, AssistantMessage((TextPart("Sunny."),)), UserMessage(("And now?",)))
    dialect = DIALECTS["deepseek"]
    assert body(ModelRequest(None, TURN), dialect)["messages"][1]["reasoning_content"] == "Hm."
    assert "reasoning_content" not in body(ModelRequest(None, later), dialect)["messages"][1]
    assert "reasoning_content" not in body(ModelRequest(None, TURN))["messages"][1]
    signed = ReasoningPart("Hm.", {"reasoning_details": [{"signature": "s"}]})
    said = (UserMessage(("Hi",)), AssistantMessage((signed, TextPart("Yes."))), UserMessage(("So?",)))
    assert body(ModelRequest(None, said))["messages"][1]["reasoning_details"] == [{"signature": "s"}]


def test_images_and_documents_as_data() -> None:
    """Images and PDFs are parts of their own; text alone is a string, which every server accepts."""
    request = ModelRequest(None, (UserMessage(("See", PNG, PDF)),))
    parts = body(request)["messages"][0]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url", "file"]
    assert parts[1]["image_url"]["url"] == "data:image/png;base64,iVBORw=="
    assert parts[2]["file"] == {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}
    assert body(ModelRequest(None, (UserMessage(("See", "this")),)))["messages"][0]["content"] == "See\n\nthis"


def test_a_call_that_was_invalid_goes_back_as_json() -> None:
    """Strict servers refuse a history whose arguments are no JSON."""
    call = ToolCall("c", "look", '{"x": ', invalid="cut")
    said = (UserMessage(("Hi",)), AssistantMessage((call,)), ToolMessage("c", "look", "no valid JSON", is_error=True))
    messages = body(ModelRequest(None, said))["messages"]
    assert json.loads(messages[1]["tool_calls"][0]["function"]["arguments"]) == {"invalid": '{"x": '}
    assert messages[2]["content"] == "Error: no valid JSON"


def test_mistral_gets_its_ids_and_names() -> None:
    """Nine letters or digits, the same in call and answer, and no field that it would refuse."""
    data = body(ModelRequest(None, TURN, (), {"seed": 7}), DIALECTS["mistral"])
    call_id = data["messages"][1]["tool_calls"][0]["id"]
    assert len(call_id) == 9
    assert call_id.isalnum()
    assert data["messages"][2]["tool_call_id"] == call_id
    assert data["random_seed"] == 7
    assert "stream_options" not in data


@pytest.mark.parametrize(("dialect", "flag"), [("vllm", "continue_final_message"), ("llamacpp", None)])
def test_going_on_from_the_assistants_words(dialect: str, flag: str | None) -> None:
    """A prefilled answer is the last message, with what the server needs to go on with it."""
    data = body(ModelRequest(None, (UserMessage(("Hi",)), AssistantMessage((TextPart("Well,"),)))), DIALECTS[dialect])
    assert data["messages"][-1] == {"role": "assistant", "content": "Well,"}
    assert flag is None or data[flag] is True


def test_an_assistant_that_said_nothing_is_left_out() -> None:
    """A message with neither text nor calls is none that servers accept."""
    said = (UserMessage(("Hi",)), AssistantMessage((ReasoningPart("Hm."),)), UserMessage(("Still there?",)))
    assert [m["role"] for m in body(ModelRequest(None, said))["messages"]] == ["user", "user"]


def test_waits_grow_and_are_bounded() -> None:
    """Each wait is up to twice the one before, and the last attempt is the last."""
    policy = RequestPolicy(attempts=8, first_delay=1, max_delay=10, jitter=lambda: 0.999)
    again = UpstreamError("unavailable", "x", retry=True)
    assert [policy.retry_delay(again, n) for n in range(1, 8)] == pytest.approx([1, 2, 4, 8, 10, 10, 10], rel=0.01)
    assert policy.retry_delay(again, 8) is None
    assert policy.retry_delay(UpstreamError("auth", "x"), 1) is None
    assert policy.retry_delay(UpstreamError("rate-limit", "x", retry=True, after=61), 1) is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:30 GMT"}, 10.0),
        ({"retry-after": "Mon, 13 Nov 2023 22:13:30 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_retry_after_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, milliseconds, dates in the future and the past, and nonsense."""
    assert parse_retry_after(headers, 1_700_000_000.0) == seconds
