"""Reads the transcript: pages and their size (`MAX_PAGE_BYTES`), single messages, paths, and what a model is shown
of a session. How a message is folded while its run is open: `core.transcript`; runs that nobody executes are settled
first (`engine.settling_reader`)."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Final

from anyio import to_thread

from holdfast.core import message_tree as tree
from holdfast.core.errors import BrokenSequenceError, JournalPrunedError, NotFoundError, StorageError
from holdfast.core.excerpts import around, beginning, normalize_query
from holdfast.core.ids import LOCAL, MessageId, OwnerId, RunId, SessionId
from holdfast.core.model_input import ModelInput, model_input
from holdfast.core.parts import approximate_size, json_size
from holdfast.core.run import Run
from holdfast.core.session import Compaction, Message, Session, with_transcript
from holdfast.engine.node_context import NodeContext
from holdfast.engine.settler import Settler
from holdfast.engine.settling_reader import SettlingReader
from holdfast.engine.transactions.row_access import get_message, get_session
from holdfast.ports.store import PathEntry, RunTimes, Tx

MAX_PAGE_BYTES: Final = 8 * 1024 * 1024
"""A page of messages ends where it would have more, though not before its first message."""
_MAX_LOOKED_AT: Final = 1000  # Messages of which a page of excerpts is made
_READ_AT_ONCE: Final = 100  # Messages of one read of the store, which others wait for
_READ_SIZE: Final = 256 * 1024  # Bytes of these


@dataclass(frozen=True, slots=True)
class MessageView:
    message: Message
    siblings: tuple[MessageId, ...]
    summary: str | None  # What models are shown instead of everything up to and including this message
    duration: float | None = None  # Seconds from the start of the message's run to its end
    size: int = 0
    """In pages: bytes of the parts, the summary and the ids of siblings; while the message is written, about so many"""


@dataclass(frozen=True, slots=True)
class Page:
    items: tuple[MessageView, ...]
    next: MessageId | None  # Cursor to the older messages
    size: int  # Bytes of its items


@dataclass(frozen=True, slots=True)
class MessageExcerpt:
    message: Message
    text: str


@dataclass(frozen=True, slots=True)
class ExcerptPage:
    items: tuple[MessageExcerpt, ...]
    next: MessageId | None  # Cursor to the older messages


@dataclass(frozen=True, slots=True)
class Outline:
    """The structure of a whole session without its texts: every settled message of the tree, parents first."""

    session: Session
    order: tuple[MessageId, ...]
    unsettled: dict[MessageId, MessageId | None]
    """Messages that are still being written, with their parents. Neither they nor queued turns are in `order`."""
    shown: tuple[MessageId, ...]  # Those of the shown branch
    compactions: tuple[Compaction, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Messages:
    _node: NodeContext
    _settler: Settler
    _reader: SettlingReader

    async def page(
        self, sid: SessionId, owner: OwnerId = LOCAL, limit: int = 50, before: MessageId | None = None
    ) -> Page:
        """The newest page of the shown branch, or the page before message `before`: at most `limit` messages and about
        `MAX_PAGE_BYTES`. An open run's message is folded from its journal, and empty if that cannot be read."""
        await self._reader.settle_session(sid)
        page = await self._node.store.read(lambda tx: _page(tx, get_session(tx, sid, owner), limit, before))
        items = [await self._live_view(item) for item in page.items]
        return _fit(reversed(items))

    async def excerpts(
        self,
        sid: SessionId,
        query: str | None = None,
        owner: OwnerId = LOCAL,
        limit: int = 50,
        before: MessageId | None = None,
    ) -> ExcerptPage:
        """The questions of the shown branch, or its messages whose text contains `query`: the newest, oldest first. A
        page looks at `_MAX_LOOKED_AT` messages or `MAX_PAGE_BYTES` at most, so it may have no items and a cursor. Of
        answers that are still being written, nothing is found. The full-text index finds words, in all branches; this
        finds any part of the texts on the shown one."""
        wanted = None if query is None else normalize_query(query)
        found: list[MessageExcerpt] = []
        looked = size = 0
        read = partial(_read_upwards, sid=sid, owner=owner, before=before, count=_READ_AT_ONCE)
        while messages := await self._node.store.read(read):
            items, count = await to_thread.run_sync(_pick, messages, wanted, limit - len(found))
            found += items
            before = messages[count - 1].id
            if messages[count - 1].parent_id is None:
                before = None
                break
            looked += count
            size += sum(approximate_size(message.parts) for message in messages[:count])
            if len(found) == limit or looked >= _MAX_LOOKED_AT or size > MAX_PAGE_BYTES:
                break
            read = partial(read, before=before, count=min(_READ_AT_ONCE, _MAX_LOOKED_AT - looked))
        return ExcerptPage(tuple(reversed(found)), before)

    async def get(self, mid: MessageId, owner: OwnerId = LOCAL) -> MessageView:
        def work(tx: Tx) -> MessageView:
            message = get_message(tx, mid)
            get_session(tx, message.session_id, owner)
            view = _message_view(tx, message, tx.compactions(message.session_id))
            return _with_durations(tx, [view])[0]

        await self._reader.settle_session((await self._node.store.read(work)).message.session_id)
        view = await self._node.store.read(work)
        return replace(view, message=await self._live(view.message))

    async def _live_view(self, view: MessageView) -> MessageView:
        live = await self._live(view.message)
        if live is view.message:
            return view
        return _sized(replace(view, message=live), approximate_size(live.parts))

    async def _live(self, message: Message) -> Message:
        if message.status != "streaming" or message.run_id is None:
            return message
        try:
            folded = await self._settler.transcript(message.run_id)
        except (StorageError, JournalPrunedError, BrokenSequenceError):  # unreadable, erased meanwhile, or damaged
            return message
        return with_transcript(message, folded, message.recovery)

    async def path(self, mid: MessageId, owner: OwnerId = LOCAL) -> Sequence[Message]:
        """From the first message to this one, as the store has them."""

        def work(tx: Tx) -> Sequence[Message]:
            session = get_session(tx, get_message(tx, mid).session_id, owner)
            return tree.path(tx, session, mid)

        return await self._node.store.read(work)

    async def path_entries(self, sid: SessionId, end: MessageId, owner: OwnerId = LOCAL) -> Sequence[PathEntry]:
        """From the first message of the session to this one, without their contents."""

        def work(tx: Tx) -> Sequence[PathEntry]:
            get_session(tx, sid, owner)
            return tx.path(end)

        return await self._node.store.read(work)

    async def read_some(self, sid: SessionId, mids: Sequence[MessageId]) -> Sequence[Message]:
        """The first of these messages of a session, at least one: as many as one read should take, because others wait
        for it. NotFoundError if one was erased, or belongs to another session."""

        def work(tx: Tx) -> Sequence[Message]:
            messages = [get_message(tx, mids[0])]
            size = approximate_size(messages[0].parts)
            for mid in mids[1:_READ_AT_ONCE]:
                if size >= _READ_SIZE:
                    break
                messages.append(get_message(tx, mid))
                size += approximate_size(messages[-1].parts)
            for message in messages:
                if message.session_id != sid:
                    raise NotFoundError("message", message.id)
            return messages

        return await self._node.store.read(work)

    async def read_one(self, sid: SessionId, mid: MessageId) -> Message:
        return (await self.read_some(sid, [mid]))[0]

    async def read_all(self, sid: SessionId, mids: Sequence[MessageId]) -> AsyncGenerator[Sequence[Message], None]:
        """All of these messages, some at a time, as `read_some` reads them."""
        at = 0
        while at < len(mids):
            messages = await self.read_some(sid, mids[at : at + _READ_AT_ONCE])
            at += len(messages)
            yield messages

    async def model_input(self, sid: SessionId, owner: OwnerId = LOCAL) -> tuple[Session, ModelInput]:
        """What a model would be shown of the session if a message were sent now."""

        def load(tx: Tx) -> tuple[Session, ModelInput]:
            session = get_session(tx, sid, owner)
            return session, model_input(tree.path(tx, session, session.head), tx.compactions(sid))

        await self._reader.settle_session(sid)
        return await self._node.store.read(load)

    async def outline(self, sid: SessionId, owner: OwnerId = LOCAL) -> Outline:
        """One snapshot. The messages it lists no longer change, but clear or delete may erase them."""
        await self._reader.settle_session(sid)
        return await self._node.store.read(lambda tx: _outline(tx, get_session(tx, sid, owner)))


def _page(tx: Tx, session: Session, limit: int, before: MessageId | None) -> Page:
    end = session.head if before is None else tree.node(tx, session, before).parent_id
    newest_first = islice(tree.upwards(tx, session, end), limit)
    compactions = tx.compactions(session.id)
    page = _fit(_sized(_message_view(tx, each, compactions), json_size(each.parts)) for each in newest_first)
    return replace(page, items=tuple(_with_durations(tx, page.items)))


def _sized(view: MessageView, parts_size: int) -> MessageView:
    siblings = sum(map(len, view.siblings)) + 3 * len(view.siblings)  # With quotation marks and commas
    return replace(view, size=parts_size + len(view.summary or "") + siblings)


def _read_upwards(tx: Tx, sid: SessionId, owner: OwnerId, before: MessageId | None, count: int) -> Sequence[Message]:
    """The newest messages of the shown branch, or those before a message: as many as one read should take."""
    session = get_session(tx, sid, owner)
    end = session.head if before is None else tree.node(tx, session, before).parent_id
    messages: list[Message] = []
    size = 0
    for message in islice(tree.upwards(tx, session, end), count):
        messages.append(message)
        size += approximate_size(message.parts)
        if size >= _READ_SIZE:
            break
    return messages


def _pick(newest_first: Sequence[Message], wanted: str | None, limit: int) -> tuple[list[MessageExcerpt], int]:
    """Up to `limit` excerpts, and of how many messages they were made."""
    found: list[MessageExcerpt] = []
    for n, message in enumerate(newest_first, 1):
        if wanted is not None:
            text = around(message.parts, wanted)
        else:
            text = beginning(message.parts) if message.role == "user" else None
        if text is not None:
            found.append(MessageExcerpt(message, text))
            if len(found) == limit:
                return found, n
    return found, len(newest_first)


def _fit(newest_first: Iterable[MessageView]) -> Page:
    """A page of the newest of these that fit."""
    found: list[MessageView] = []
    size = 0
    for view in newest_first:
        if found and size + view.size > MAX_PAGE_BYTES:
            break
        found.append(view)
        size += view.size
    found.reverse()
    has_older = bool(found) and found[0].message.parent_id is not None
    return Page(tuple(found), found[0].message.id if has_older else None, size)


def _message_view(tx: Tx, message: Message, compactions: Mapping[MessageId, Compaction]) -> MessageView:
    compaction = compactions.get(message.id)
    siblings = tuple(tx.children(message.session_id, message.parent_id))
    summary = None if compaction is None else compaction.summary
    return MessageView(message, siblings, summary)


def _with_durations(tx: Tx, views: Sequence[MessageView]) -> list[MessageView]:
    """Of all messages at once: the rows of runs may be long, and of each only two times are needed."""
    runs = {view.message.id: view.message.run_id for view in views if view.message.role != "user"}
    times = tx.run_times([rid for rid in runs.values() if rid is not None])
    return [replace(view, duration=_duration(times, runs.get(view.message.id))) for view in views]


def _duration(times: Mapping[RunId, RunTimes], rid: RunId | None) -> float | None:
    found = None if rid is None else times.get(rid)
    if found is None or found.started_at is None or found.ended_at is None:
        return None
    return max(0.0, found.ended_at - found.started_at)


def _outline(tx: Tx, session: Session) -> Outline:
    unsettled: dict[MessageId, MessageId | None] = {}
    for run in tx.open_runs(session.id):
        message = tx.message(run.message_id) if run.in_tree else None
        if message is not None:
            unsettled[message.id] = message.parent_id
    order: list[MessageId] = []
    parents: dict[MessageId, MessageId] = {}
    level: list[MessageId] = list(tx.children(session.id, None))
    while level:
        order += [mid for mid in level if mid not in unsettled]
        below = [(child, mid) for mid in level for child in tx.children(session.id, mid)]
        parents.update(below)
        level = [child for child, _ in below]
    shown: list[MessageId] = []
    at = session.head
    while at is not None:
        shown.append(at)
        at = parents.get(at)
    branch = tuple(mid for mid in reversed(shown) if mid not in unsettled)
    return Outline(session, tuple(order), unsettled, branch, tuple(tx.compactions(session.id).values()))


def input_of_run(tx: Tx, run: Run, session: Session) -> ModelInput:
    """What the run's model is shown of the past now: a compaction during the run counts."""
    question = tx.message(run.user_message_id)
    history = [] if question is None else [*tree.path(tx, session, question.parent_id), question]
    return model_input(history, tx.compactions(session.id))
