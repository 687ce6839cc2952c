"""A conversation in a terminal, straight on the engine: what `make run` shows until there is a server to talk to."""

from collections.abc import Awaitable, Callable

from holdfast.core.events import TextDelta
from holdfast.core.ids import LOCAL, SessionId
from holdfast.core.parts import Text, plain_text
from holdfast.core.session import Message
from holdfast.engine.service import Service
from holdfast.ports import SessionQuery

Show = Callable[[str], None]
Ask = Callable[[str], Awaitable[str | None]]

_NOTICES = {
    "cancelled": "(stopped; what had been written is kept)",
    "failed": "(failed; what had been written is kept)",
    "interrupted": "(interrupted; what had been written is kept)",
}


async def converse(service: Service, show: Show, ask: Ask) -> None:
    """Show the latest conversation, then answer line by line until there are no more lines."""
    sid = await _latest(service)
    for view in (await service.messages(sid)).items:
        show(_written(view.message))
    while (line := await ask("you> ")) is not None:
        if not line.strip():
            continue
        run = (await service.submit(sid, [Text(line)])).run
        async with service.watch(run.id) as events:
            while (entries := await events.next()) is not None:
                for entry in entries:
                    event = entry.event()
                    if isinstance(event, TextDelta):
                        show(event.text)
        show("\n")


async def _latest(service: Service) -> SessionId:
    found = await service.sessions(SessionQuery(LOCAL, limit=1))
    return found[0].session.id if found else (await service.create_session()).id


def _written(message: Message) -> str:
    who = "you> " if message.role == "user" else ""
    notice = _NOTICES.get(message.status, "")
    return f"{who}{plain_text(message.parts)}{' ' if notice else ''}{notice}\n"
