"""Turns rows in the form of the OpenAI API (user, assistant, tool), as Hermes keeps them, into messages, and joins the
pieces of a conversation that was compacted."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, Protocol

from holdfast.core.events import Ending, Failure
from holdfast.core.ids import MessageId
from holdfast.core.parts import Part, TextPart
from holdfast.importers.answer_parts import AnswerParts
from holdfast.importers.fields import Items, Json, Object, decode_data_url, objects, parse_arguments, text
from holdfast.importers.json_objects import parse_json
from holdfast.importers.session_builder import SessionBuilder

_SUMMARY_PREFIXES: Final = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]")
_MERGED_HEADER: Final = "[PRIOR CONTEXT — for reference only; not a new message]"
_MERGED_SUMMARY: Final = "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]"
_SUMMARY_END: Final = "--- END OF CONTEXT SUMMARY"
COMPACTION: Final = "compaction"  # The role of a row that contains the summary of a compaction


@dataclass(slots=True)
class ChatRow:
    role: str
    content: Json
    at: float | None = None
    calls: Sequence[Object] = ()
    call_id: str = ""
    name: str = ""
    reasoning: str = ""
    model: str = ""
    attachments: Sequence[Object] = ()
    ending: Ending = "complete"
    notice: str | None = None  # Text of the application about a failed turn, not of the model
    rewound: bool = False

    def identity(self) -> int:
        """Equal for a row and its copy in the next segment, of which Hermes may have shortened a tool's result."""
        calls = tuple(text(call.get("id")) for call in self.calls)
        said = "" if self.call_id or any(calls) else plain(self.content).strip()
        return hash((self.role, self.call_id, calls, said))


class RowSource(Protocol):
    """Rows that are made again whenever they are read."""

    def __len__(self) -> int: ...
    def __getitem__(self, n: int, /) -> ChatRow: ...


@dataclass(frozen=True, slots=True)
class StoredRows:
    items: Items
    make: Callable[[Json, int], ChatRow]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, n: int) -> ChatRow:
        return self.make(self.items[n], n)


@dataclass(slots=True)
class RowNote:
    """What is held in memory of a row."""

    source: RowSource
    n: int
    identity: int = 0
    rewound: bool = False
    summary: tuple[str, str] | None = None  # See `split_summary`
    merged: str | None = None  # Its content without the summary
    begins_segment: bool = False  # Whether it is the first row after a compaction that left no summary

    def row(self) -> ChatRow:
        row = self.source[self.n]
        return row if self.merged is None else replace(row, content=self.merged)


def note_rows(source: RowSource) -> list[RowNote]:
    notes = []
    for n in range(len(source)):
        row = source[n]
        notes.append(RowNote(source, n, row.identity(), row.rewound, split_summary(row)))
    return notes


def plain(content: Json) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text(part.get("text")) for part in objects(content))


def decode_calls(value: Json) -> list[Object]:
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError:
            return []
    return objects(value)


# ---- compaction ----


def split_summary(row: ChatRow) -> tuple[str, str] | None:
    """The summary in a row that Hermes inserted when it compacted, and the text that it was merged into."""
    said = plain(row.content).lstrip()
    before, mark, after = said.partition(_MERGED_SUMMARY)
    body = (after if mark else said).lstrip()
    prefix = next((prefix for prefix in _SUMMARY_PREFIXES if body.startswith(prefix)), None)
    if prefix is None:
        return None
    first, _, rest = body.partition("\n")
    summary = rest if rest.strip() else first.removeprefix(prefix).lstrip(":] ")
    summary, _, after_end = summary.partition(_SUMMARY_END)
    merged = before.removeprefix(_MERGED_HEADER).strip() if mark else after_end.partition("\n")[2].strip()
    return summary.strip(), merged


def join_segments(rows: Sequence[RowNote]) -> list[RowNote]:
    """The rows without the copies that a compaction makes: it repeats the first rows, adds a summary, and repeats the
    last rows. The summary becomes a row of its own."""
    joined = _JoinedRows()
    start = 0
    for at, row in enumerate(rows):
        found = None if row.rewound else row.summary
        if found is None and not row.begins_segment:
            continue
        joined.add_segment(rows[start:at])
        if found is None:
            start = at
            continue
        joined.drop_repeated_start()
        summary, merged = found
        joined.rows.append(RowNote([ChatRow(COMPACTION, summary, row.row().at)], 0))
        start = at + 1
        if merged:
            row.merged = merged
            row.identity = row.row().identity()
            start = at
    if not joined.rows:
        return list(rows)
    joined.add_segment(rows[start:])
    return joined.rows


class _JoinedRows:
    """The segments that were joined so far. Every operation takes time in proportion to the last segment, not to all
    rows: a file can have as many compactions as rows."""

    def __init__(self) -> None:
        self.rows: list[RowNote] = []
        self._places: list[int] = []  # Of the rows that a copy can repeat, in `rows`
        self._identities: list[int] = []  # Of the same rows
        self._counts: Counter[int] = Counter()
        self._added = 0  # Such rows of the last segment
        self._is_first = True

    def add_segment(self, segment: Sequence[RowNote]) -> None:
        """Adds the segment after the longest beginning that repeats the end of the rows. If none does, because the
        copies were edited, after the rows that occur anywhere in them."""
        length = self._added = 0
        if not segment:
            return
        if not self._is_first:
            after = [row.identity for row in segment]
            length = _overlap(after, self._identities[-len(after) :])
            if not length:
                length = next((n for n, each in enumerate(after) if not self._counts[each]), len(after))
        self._is_first = False
        for row in segment[length:]:
            if not row.rewound:
                self._places.append(len(self.rows))
                self._identities.append(row.identity)
                self._counts[row.identity] += 1
                self._added += 1
            self.rows.append(row)

    def drop_repeated_start(self) -> None:
        """Removes rows at the end of the last segment that repeat the beginning of all: the copies that stand before an
        inserted summary."""
        most = min(self._added, len(self._places) // 2)
        length = _overlap(self._identities[:most], self._identities[len(self._identities) - most :])
        if not length:
            return
        first = self._places[-length]
        self.rows[first:] = [row for row in self.rows[first:] if row.rewound]
        self._counts.subtract(self._identities[-length:])
        del self._places[-length:], self._identities[-length:]


def _overlap(start: Sequence[int], whole: Sequence[int]) -> int:
    """The length of the longest beginning of `start` that `whole` ends with (Knuth-Morris-Pratt)."""
    if not start:
        return 0
    table = [0] * len(start)
    k = 0
    for n in range(1, len(start)):
        while k and start[n] != start[k]:
            k = table[k - 1]
        k += start[n] == start[k]
        table[n] = k
    k = 0
    for each in whole:
        while k and (k == len(start) or each != start[k]):
            k = table[k - 1]
        k += each == start[k]
    return k


# ---- messages ----

AddFile = Callable[[Object], Part]


class RowReader:
    """Adds rows to a session: a person's row is a message, and the rows up to the next one are its answer."""

    def __init__(self, builder: SessionBuilder, add_file: AddFile) -> None:
        self._builder = builder
        self._add_file = add_file
        self._answer: AnswerParts | None = None
        self._first: ChatRow | None = None
        self._ending: Ending = "complete"
        self._notice: str | None = None
        self._parent: MessageId | None = None
        self._compaction: ChatRow | None = None
        self.last: Literal["user", "assistant"] | None = None

    def add_all(self, rows: Iterable[ChatRow]) -> None:
        main: MessageId | None = None
        was_rewound = False
        for row in rows:
            if row.rewound != was_rewound:  # rewound rows are a branch beside those that follow
                self._close(user_follows=True)
                main = self._parent if row.rewound else main
                self._parent, was_rewound = main, row.rewound
            self._add(row)
        self._close(user_follows=False)
        if was_rewound:
            self._parent = main
            self.last = None
        self._builder.head = self._parent or self._builder.head

    def _add(self, row: ChatRow) -> None:
        if row.role == COMPACTION:
            self._compaction = row
        elif row.role == "user":
            self._close(user_follows=True)
            parts = self._content(row)
            parts += [self._add_file(item) for item in row.attachments]
            self._parent = self._builder.add("user", self._parent, parts, at=row.at)
            self.last = "user"
        elif row.role in ("assistant", "tool"):
            self._add_to_answer(row)

    def _compact(self) -> None:
        """Adds the last compaction at the last complete message; in the middle of an answer, that is its question."""
        if self._compaction is not None and self._parent is not None:
            self._builder.add_compaction(self._parent, text(self._compaction.content), self._compaction.at)
        self._compaction = None

    def _add_to_answer(self, row: ChatRow) -> None:
        self._compact()
        if self._answer is None:
            self._answer, self._first, self._ending, self._notice = (
                AnswerParts(self._builder.label),
                row,
                "complete",
                None,
            )
        self._ending = row.ending
        if row.notice is not None:
            self._notice = row.notice
            return
        if row.role == "tool":
            self._answer.add_result(row.call_id, row.name, plain(row.content) or row.content)
            return
        self._answer.add_reasoning(row.reasoning)
        for part in self._content(row):
            if isinstance(part, TextPart):
                self._answer.add_text(part.text)
        for call in row.calls:
            function = call.get("function")
            function = function if isinstance(function, dict) else call
            args = parse_arguments(function.get("arguments", function.get("args", {})))
            self._answer.add_call(text(call.get("id")) or text(call.get("call_id")), text(function.get("name")), args)

    def add_interrupted(self, answer: AnswerParts, at: float | None) -> None:
        """The answer to a turn that was never finished: what was shown of it."""
        parts = answer.finish(user_follows=False)
        self._parent = self._builder.add("assistant", self._parent, parts, at=at, status="interrupted")
        self.last = "assistant"

    def _close(self, *, user_follows: bool) -> None:
        if self._answer is None or self._first is None:
            self._compact()
            return
        error = None
        if self._ending == "failed":
            error = Failure("upstream", self._notice or "The answer failed.")
        parts = self._answer.finish(user_follows=user_follows)
        self._parent = self._builder.add(
            "assistant",
            self._parent,
            parts,
            at=self._first.at,
            status=self._ending,
            error=error,
            model=self._first.model,
        )
        self._answer = self._first = None
        self.last = "assistant"
        self._compact()

    def _content(self, row: ChatRow) -> list[Part]:
        if isinstance(row.content, str):
            return [TextPart(row.content)] if row.content.strip() else []
        parts: list[Part] = []
        for item in objects(row.content):
            url = item.get("image_url")
            url = text(url.get("url")) if isinstance(url, dict) else text(url)
            if url:
                decoded = decode_data_url(url)
                if decoded is None:
                    parts.append(TextPart(url))
                else:
                    name = f"image.{decoded[0].rpartition('/')[2]}"
                    parts.append(self._builder.add_content(name, decoded[0], decoded[1]))
            elif text(item.get("text")).strip():
                parts.append(TextPart(text(item.get("text"))))
        return parts
