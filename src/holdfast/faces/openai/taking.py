"""A call taken in as a turn: where in which session, with what past, and under which key."""

from collections.abc import Sequence

from anyio import to_thread

from holdfast.core.errors import Busy, NotFound
from holdfast.core.ids import LOCAL, MessageId, SessionId
from holdfast.core.ledger import OFF
from holdfast.core.parts import Json, Part, Tool
from holdfast.core.run import Lifetime, Run
from holdfast.core.session import Message, Session
from holdfast.core.values import dataclass, replace
from holdfast.engine.book.accept import Accepted
from holdfast.engine.service import Wish
from holdfast.faces.http.api import Api
from holdfast.faces.http.media import SNIFF, media_type
from holdfast.faces.http.upload import label
from holdfast.faces.openai import names, output
from holdfast.faces.openai.errors import Wrong, unsupported
from holdfast.faces.openai.said import Draft, Known, Piece, Upload
from holdfast.faces.openai.targets import DIRECT, SOURCE, Target


@dataclass(frozen=True, slots=True)
class Call:
    """What a client wants, whichever way it said it."""

    target: Target
    system: str | None
    past: Sequence[Draft]
    last: Draft
    settings: dict[str, Json]
    """Of the run."""
    body: Json
    key: str | None
    lifetime: Lifetime
    keep: bool = True
    below: Run | None = None
    """The run that is answered to."""
    session: SessionId | None = None
    """The conversation that goes on at its head."""


async def take(api: Api, call: Call) -> Accepted:
    service = api.service
    past = [(draft.role, await _stored(api, draft.pieces, call.target)) for draft in call.past]
    parts = await _stored(api, call.last.pieces, call.target)
    own = (
        {"memory": OFF} if call.target.agent == DIRECT else {}
    )  # what a program asks of a model alone is its own affair
    settings = {**call.settings, **own}
    how = {"agent": call.target.agent, "model": call.target.model, "settings": settings, "lifetime": call.lifetime}
    wish = Wish(call.body, call.key, **how)  # type: ignore[arg-type]
    fresh = SessionId(service.new_id("ses")) if call.key is None else names.keyed_session(LOCAL, call.key)
    if call.session is not None and not past:
        return await service.submit(call.session, parts, key=call.key, body=call.body, **how)  # type: ignore[arg-type]
    old = call.key is not None and await service.run_with_key(fresh, call.key) is not None
    below = await _below(api, call)
    if below is not None and call.keep and not old:
        sid = below.session_id
        try:
            return await service.branch(sid, below.id, _chain(api, sid, below.id, past, below.created_at), parts, wish)
        except Busy:  # another branch of it is being answered: this one goes on beside it, with the same past
            pass
    return await _begin(api, call, fresh, below, past, parts, wish)


async def _below(api: Api, call: Call) -> Message | None:
    """The message that the call goes on from."""
    if call.below is not None:
        return (await api.service.message(call.below.message_id)).message
    if call.session is not None:
        head = (await api.service.session(call.session)).session.head
        return None if head is None else (await api.service.message(head)).message
    return None


async def _begin(
    api: Api,
    call: Call,
    sid: SessionId,
    below: Message | None,
    past: Sequence[tuple[str, list[Part]]],
    parts: list[Part],
    wish: Wish,
) -> Accepted:
    service, now = api.service, api.service.now()
    copied: list[Message] = []
    for message in [] if below is None else await service.path(below.id):
        if message.status != "streaming" and message.recovery != "pending":
            mid, parent = MessageId(service.new_id("msg")), copied[-1].id if copied else None
            own = replace(message, id=mid, session_id=sid, parent_id=parent)
            copied.append(replace(own, run_id=None, key=None, last_seq=0))
    chain = [*copied, *_chain(api, sid, copied[-1].id if copied else None, past, now)]
    # What a program asks says nothing of a person, and what it is answered must not depend on one.
    settings: dict[str, Json] = {"source": SOURCE, "memory": OFF, **({} if call.keep else {"keep": False})}
    session = Session(
        sid,
        LOCAL,
        now,
        now,
        agent=call.target.agent,
        model=call.target.model,
        system=call.system,
        settings=settings,
        head=chain[-1].id if chain else None,
    )
    return await service.begin(session, chain, parts, wish)


def _chain(
    api: Api, sid: SessionId, parent: MessageId | None, past: Sequence[tuple[str, list[Part]]], now: float
) -> list[Message]:
    chain: list[Message] = []
    for role, parts in past:
        mid = MessageId(api.service.new_id("msg"))
        chain.append(Message(mid, LOCAL, sid, role, parent, now, parts=tuple(parts)))  # type: ignore[arg-type]
        parent = mid
    return chain


async def calls_before(api: Api, mid: MessageId) -> dict[str, str]:
    """Names of the calls that the client may answer, by call id."""
    found = await api.service.path(mid)
    return {p.call_id: p.name for message in found for p in message.parts if isinstance(p, Tool)}


async def referred(api: Api, ids: Sequence[tuple[str, str]]) -> dict[str, Part]:
    """Output items that a client names and does not send."""
    found: dict[str, Part] = {}
    for item_id, param in ids:
        place = names.place_of(item_id)
        try:
            if place is None:
                raise NotFound("item", item_id)
            run = await api.service.run(place[0])
            parts = output.shown((await api.service.message(run.message_id)).message.parts)
            found[item_id] = parts[place[1]]
        except (NotFound, IndexError):
            raise Wrong(param, f"Item with id '{item_id[:100]}' not found.", "item_not_found") from None
    return found


async def run_before(api: Api, response_id: str) -> Run:
    """The run that `previous_response_id` names. One that is not over has nothing to go on from yet."""
    try:
        run = await api.service.run(names.run_of(response_id))
    except NotFound:
        told = f"Previous response with id '{response_id[:100]}' not found."
        raise Wrong("previous_response_id", told, "previous_response_not_found") from None
    if run.is_open:
        told = f"The previous response '{response_id}' is still in progress. Wait for it, or cancel it."
        raise Wrong("previous_response_id", told, "previous_response_in_progress")
    return run


async def _stored(api: Api, pieces: Sequence[Piece], target: Target) -> list[Part]:
    return [await _part(api, piece, target) for piece in pieces]


async def _part(api: Api, piece: Piece, target: Target) -> Part:
    match piece:
        case Upload():
            return await _keep(api, piece, target)
        case Known(param, file_id):
            try:
                file = await api.library.file(file_id)
            except NotFound:
                raise Wrong(param, f"There is no file '{file_id[:100]}'. POST /api/files uploads one.") from None
            _check_readable(file.media_type, param, target)
            return file.part()
        case _:
            return piece


def _check_readable(media_type: str, param: str, target: Target) -> None:
    """A model that cannot read a file is not asked about it: it would answer about something else."""
    needed = {"image": "images", "application": "documents"}.get(media_type.partition("/")[0])
    if media_type.startswith("application/") and media_type != "application/pdf":
        needed = None  # a text
    if needed is not None and needed not in target.knows:
        told = f"{target.name!r} is not known to read {needed}. If it does, say so with `abilities` of its provider."
        raise unsupported(param, told)


async def _keep(api: Api, upload: Upload, target: Target) -> Part:
    kind = media_type(upload.data[:SNIFF], upload.media_type)
    if kind is None or not upload.data:
        raise Wrong(upload.param, f"'{upload.param}' is neither an image nor a PDF nor text.")
    _check_readable(kind, upload.param, target)
    library = api.library
    with await to_thread.run_sync(library.begin) as incoming:
        await to_thread.run_sync(incoming.write, upload.data)
        return (await library.add(incoming, label(upload.name), kind)).part()
