"""A session as one HTML file: what is in it, and that it runs and loads nothing."""

import re
from dataclasses import replace
from time import process_time

import pytest

from holdfast.core.events import Failure
from holdfast.core.ids import LOCAL, FileId, MessageId, SessionId
from holdfast.core.parts import FilePart, Part, PlanEntry, PlanPart, ReasoningPart, RememberedPart, TextPart, ToolPart
from holdfast.core.session import Message, Session
from holdfast.engine.html_export import split_at_files, write_heading, write_messages

SID = SessionId("ses_1")
HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(2)">\0"\'&'


def answer(*parts: Part) -> Message:
    return Message(MessageId("msg_1"), LOCAL, SID, "assistant", None, 0.0, parts=parts, model="m<1>")


def html(*parts: Part) -> str:
    return write_messages([answer(*parts)]).decode()


def test_markdown_is_rendered_and_parts_are_kept() -> None:
    """Answers are Markdown, questions are as they were typed; reasoning and tools are collapsed."""
    shown = html(
        ReasoningPart("Hm, *well*."),
        ToolPart("c", "shell", {"command": "ls"}, "done", result="a.txt"),
        TextPart("# One\n\n| a | b |\n|---|---|\n| 1 | ~~2~~ |\n\n```py\nx < 1\n```"),
        RememberedPart(({"text": "Likes peas."},)),
        PlanPart((PlanEntry("Dig", "completed"), PlanEntry("Sow", "pending"))),
    )
    assert "<details><summary>Reasoning</summary>" in shown
    assert "<summary>shell (done)</summary>" in shown
    assert "<h1>One</h1>" in shown
    assert "<td><s>2</s></td>" in shown
    assert '<div class="table"><table>' in shown
    assert '<h2 class="author">' in shown  # a heading of an answer must not look like this one
    assert "x &lt; 1" in shown
    assert "Likes peas." in shown
    assert "☑ Dig</li><li>☐ Sow" in shown
    question = replace(answer(TextPart("# not *a* title")), role="user")
    assert '<p class="plain" dir="auto"># not *a* title</p>' in write_messages([question]).decode()
    failed = replace(answer(), status="failed", error=Failure("provider", "Away <now>."))
    assert "Failed. Away &lt;now&gt;." in write_messages([failed]).decode()


@pytest.mark.parametrize(
    "part",
    [
        TextPart(HOSTILE),
        TextPart("x" * 200_001 + HOSTILE),
        TextPart(f"[a](javascript:alert(1)) ![{HOSTILE}](https://evil.example/x.png)"),
        ReasoningPart(HOSTILE),
        ToolPart("c", HOSTILE, HOSTILE, "done", result={"a": HOSTILE}),
        FilePart(FileId("file_1"), HOSTILE, "text/html", 3),
        RememberedPart(({"text": HOSTILE},)),
        PlanPart((PlanEntry(HOSTILE, "pending"),)),
    ],
)
def test_nothing_runs_and_nothing_is_loaded(part: Part) -> None:
    """What models and people wrote is text: no element of theirs, no address that is loaded, no place for a file."""
    shown = html(part)
    assert not re.search(r"<(script|img|iframe|object|link|style)", shown)
    assert "\0" not in shown
    assert not re.search(r'href="javascript', shown)
    policy = write_heading(Session(SID, LOCAL, 0.0, 0.0, title=HOSTILE))
    assert "<script" not in policy
    assert "default-src &#x27;none&#x27;" in policy


def test_images_leave_a_place_for_their_content() -> None:
    """Images of the usual types are embedded; where their content belongs is found again."""
    before, file, after = split_at_files(
        write_messages([answer(FilePart(FileId("file_1"), "a b.png", "image/png", 3), TextPart("\0file_2\0"))])
    )
    assert before.endswith(b'<img src="data:image/png;base64,')
    assert (file, after[:15]) == (b"file_1", b'" alt="a b.png"')
    missing = FilePart(FileId("file_1"), "a b.png", "image/png", 3, missing="not_imported")
    assert len(split_at_files(write_messages([answer(missing)]))) == 1


@pytest.mark.parametrize("piece", ["[", "*a_ ", "> ", "`" * 3, "![](", "<", "- ", "|a|b\n", "\\", "**"])
def test_hostile_markdown_takes_little_time(piece: str) -> None:
    """A long text of one pattern is rendered in time that does not grow with its square."""
    text = piece * (60_000 // len(piece))
    started = process_time()
    html(TextPart(text))
    assert process_time() - started < 5


def test_a_message_has_a_limit_of_markdown() -> None:
    """It may have thousands of parts: those beyond the limit are shown as they are."""
    text = "*a* " * 25_000
    shown = html(*(TextPart(text) for _ in range(3)))
    assert shown.count("<em>a</em>") == 50_000
    assert shown.count("*a* ") == 25_000
    assert "<em>" in write_messages([answer(TextPart(text))]).decode()  # the next message has its own
