"""Submits a call as a turn: applies its idempotency key, stores its files, and finds its place in a session or starts a
session. What a repeated key with another body gets: `engine.transactions.accept.find_repeated`."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final

from pydantic import BaseModel
from starlette.types import Receive

from holdfast.core import message_tree
from holdfast.core.errors import NotFoundError, SessionBusyError
from holdfast.core.ids import LOCAL, MessageId, RunId, SessionId
from holdfast.core.memory_ledger import OFF
from holdfast.core.parts import Json, Part, ToolPart, json_size
from holdfast.core.run import Lifetime, Run
from holdfast.core.session import Message, Session
from holdfast.core.size_text import size_text
from holdfast.core.titles import first_words
from holdfast.engine.transactions.accept import Accepted, RunOptions
from holdfast.server.context import ApiContext
from holdfast.server.openai import ids
from holdfast.server.openai.errors import ParameterError
from holdfast.server.openai.file_parts import StoredTurn, store_turns
from holdfast.server.openai.input_items import TurnBuilder, read_messages
from holdfast.server.openai.model_names import DIRECT, Target
from holdfast.server.openai.parameters import SOURCE, RunSettings, settings_of_chat
from holdfast.server.openai.response_object import output_parts, stored_parameters
from holdfast.server.openai.schemas import ChatRequest, InputItem, ItemReference, ResponseRequest
from holdfast.server.routing import run_sized

MAX_REFERENCED_BYTES: Final = 32 * 1024 * 1024  # Of the items that a call refers to, repeats included


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A call of either endpoint, checked and read."""

    body: ResponseRequest | ChatRequest
    target: Target
    settings: RunSettings
    turns: TurnBuilder
    key: str | None
    lifetime: Lifetime
    receive: Receive  # Tells when the client disconnects
    size: int  # Bytes of the request
    previous: Run | None = None  # The run below which a branch begins
    session: SessionId | None = None  # The conversation that continues at its head

    @property
    def stored(self) -> bool:
        return self.body.store is not False

    @property
    def instructions(self) -> str | None:
        own = [self.body.instructions] if isinstance(self.body, ResponseRequest) and self.body.instructions else []
        return "\n\n".join([*own, *self.turns.instructions]) or None


def read_chat(body: ChatRequest, target: Target) -> tuple[RunSettings, TurnBuilder]:
    settings, turns = settings_of_chat(body, target), TurnBuilder("messages")
    read_messages(body.messages, turns)
    return settings, turns


async def submit_turn(api: ApiContext, call: ApiCall) -> Accepted:
    engine, key = api.engine, call.key
    earlier, last = call.turns.finish()
    options = await run_sized(partial(_run_options, call), call.size)
    new = SessionId(engine.ids.new("ses")) if key is None else ids.session_of_key(LOCAL, key)
    # A repeat returns the run of the first call, whatever has become of the files that the call names.
    for sid in _sessions_with_key(call, new) if key is not None else ():
        if (accepted := await engine.runs.find_repeated(sid, options)) is not None:
            return accepted
    *past, (_, parts) = await store_turns(api, [*earlier, last], call.target, call.receive)
    if call.session is not None and not past:
        return await engine.runs.submit(call.session, parts, **asdict(options))
    parent = await _parent(api, call)
    if call.session is not None:
        above, at = (None, engine.clock.now()) if parent is None else (parent.id, parent.created_at)
        chain = await run_sized(partial(message_chain, api, call.session, above, past, at), call.size)
        return await engine.runs.branch(call.session, above, chain, parts, options)
    if parent is not None and call.stored:
        at = parent.created_at
        chain = await run_sized(partial(message_chain, api, parent.session_id, parent.id, past, at), call.size)
        try:
            return await engine.runs.branch(parent.session_id, parent.id, chain, parts, options)
        except SessionBusyError:  # another branch is being answered: this one gets a session with the same past
            pass
    return await _start_session(api, call, new, parent, past, parts, options)


def _sessions_with_key(call: ApiCall, new: SessionId) -> Sequence[SessionId]:
    """The sessions that an earlier call with the same key may have used."""
    if call.session is not None:
        return [call.session]
    return [new] if call.previous is None else [new, call.previous.session_id]


def _run_options(call: ApiCall) -> RunOptions:
    target, settings = call.target, call.settings
    ignored = [*settings.ignored, *call.turns.reported]
    sent = _as_sent(call.body)
    values = {
        **settings.values,
        "instructions": call.instructions,
        "openai": stored_parameters(call.body, sent, target.name, ignored),
        # A model without an agent gets no memories, only what the client sends.
        **({"memory": OFF} if target.agent == DIRECT else {}),
    }
    body = ["response" if isinstance(call.body, ResponseRequest) else "chat", sent]
    return RunOptions(body, call.key, target.agent, target.model, values, call.lifetime)


def _as_sent(body: ResponseRequest | ChatRequest) -> dict[str, Any]:
    """The body as JSON. Its items one by one: nothing else runs while pydantic makes JSON, in whatever thread."""
    as_json = partial(BaseModel.model_dump, mode="json", by_alias=True, exclude_unset=True)
    name, items = ("messages", body.messages) if isinstance(body, ChatRequest) else ("input", body.input)
    sent = as_json(body, exclude={name})
    return {**sent, name: items if isinstance(items, str) else [as_json(item) for item in items]}


async def _parent(api: ApiContext, call: ApiCall) -> Message | None:
    """The message below which the turn belongs."""
    if call.previous is not None:
        return (await api.engine.messages.get(call.previous.message_id)).message
    if call.session is not None:
        head = (await api.engine.sessions.get(call.session)).session.head
        return None if head is None else (await api.engine.messages.get(head)).message
    return None


async def _start_session(
    api: ApiContext,
    call: ApiCall,
    sid: SessionId,
    parent: Message | None,
    past: Sequence[StoredTurn],
    parts: list[Part],
    options: RunOptions,
) -> Accepted:
    """Start a session with a copy of the path to `parent` and with the past that came with the call."""
    engine, now = api.engine, api.engine.clock.now()
    path = [] if parent is None else await engine.messages.path(parent.id)
    chain = message_tree.copies(path, sid, lambda _: MessageId(engine.ids.new("msg")))
    below = chain[-1].id if chain else None
    chain += await run_sized(partial(message_chain, api, sid, below, past, now), call.size)
    title = first_words(next((message.parts for message in chain if message.role == "user"), parts))
    # A program's calls say nothing about the person who uses this server, and its answers must not depend on them.
    settings: dict[str, Json] = {"source": SOURCE, "memory": OFF, **({} if call.stored else {"keep": False})}
    session = Session(
        sid,
        LOCAL,
        now,
        now,
        agent=call.target.agent,
        model=call.target.model,
        system=call.instructions,
        settings=settings,
        head=chain[-1].id if chain else None,
        title=title,
        titled_by="model" if title else "nobody",
    )
    return await engine.runs.start_session(session, chain, parts, options)


def message_chain(
    api: ApiContext, sid: SessionId, parent: MessageId | None, past: Sequence[StoredTurn], now: float
) -> list[Message]:
    """The turns as messages, each below the one before it."""
    chain: list[Message] = []
    for role, parts in past:
        mid = MessageId(api.engine.ids.new("msg"))
        chain.append(Message(mid, LOCAL, sid, role, parent, now, parts=tuple(parts)))  # type: ignore[arg-type]
        parent = mid
    return chain


# ---- what a call refers to ----


async def previous_run(api: ApiContext, response_id: str) -> Run:
    """The run that `previous_response_id` names."""
    try:
        run = await api.engine.runs.get(ids.run_id(response_id))
    except NotFoundError:
        message = f"Previous response with id '{response_id[:100]}' not found."
        raise ParameterError("previous_response_id", message, "previous_response_not_found") from None
    if run.is_open:
        message = f"The previous response '{response_id}' is still in progress. Wait for it or cancel it."
        raise ParameterError("previous_response_id", message, "previous_response_in_progress")
    return run


async def find_conversation(api: ApiContext, conversation_id: str) -> Session:
    try:
        return (await api.engine.sessions.get(ids.session_id(conversation_id))).session
    except NotFoundError:
        raise NotFoundError("conversation", conversation_id) from None


async def conversation_session(api: ApiContext, conversation_id: str) -> Session:
    """The session that `conversation` names."""
    try:
        return await find_conversation(api, conversation_id)
    except NotFoundError:
        message = f"Conversation with id '{conversation_id[:100]}' not found."
        raise ParameterError("conversation", message, "conversation_not_found") from None


async def earlier_calls(api: ApiContext, mid: MessageId) -> dict[str, str]:
    """Names of the tool calls on the path to a message, by call id: the client may answer them."""
    path = await api.engine.messages.path(mid)
    return {part.call_id: part.name for message in path for part in message.parts if isinstance(part, ToolPart)}


async def referenced_parts(api: ApiContext, given: str | Sequence[InputItem], param: str) -> dict[str, Part]:
    """The output items that the input refers to instead of repeating them, by id. Of a run they are read once, if the
    references to it follow one another: nothing else of it is kept."""
    found: dict[str, Part] = {}
    sizes: dict[str, int] = {}
    last: RunId | None = None
    output: list[Part] = []  # Of the last run
    size = 0
    for n, item in enumerate(given):
        if isinstance(item, ItemReference):
            if item.id not in found:
                try:
                    run_id, index = ids.parse_item_id(item.id)
                    if run_id != last:
                        run = await api.engine.runs.get(run_id)
                        output = output_parts((await api.engine.messages.get(run.message_id)).message.parts)
                        last = run_id
                    found[item.id] = output[index]
                except (NotFoundError, IndexError):
                    problem = f"Item with id '{item.id[:100]}' not found."
                    raise ParameterError(f"{param}[{n}].id", problem, "item_not_found") from None
                sizes[item.id] = json_size([found[item.id]])
            size += sizes[item.id]
            if size > MAX_REFERENCED_BYTES:
                problem = (
                    f"The items that '{param}' refers to have more than {size_text(MAX_REFERENCED_BYTES)} together."
                )
                raise ParameterError(f"{param}[{n}].id", problem)
    return found
