"""From an accepted turn to its answer: subscribe, and hold the connection of a run that is its connection."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Annotated

from fastapi import Header
from starlette.responses import Response

from holdfast.core.run import Lifetime
from holdfast.engine.book.accept import Accepted
from holdfast.engine.feed import Subscription
from holdfast.faces.http.api import Api
from holdfast.faces.openai.errors import Wrong
from holdfast.faces.openai.taking import Call, take

LIFETIME = "Holdfast-Lifetime"
LifetimeHeader = Annotated[
    str | None,
    Header(alias=LIFETIME, max_length=20, description="`detached`: the run goes on without the client. Or `attached`."),
]


def lifetime(header: str | None, otherwise: Lifetime) -> Lifetime:
    match header:
        case None:
            return otherwise
        case "detached" | "attached":
            return header
        case _:
            raise Wrong(LIFETIME, f"'{header}' is no lifetime: there are 'detached' and 'attached'.")


Respond = Callable[[Accepted, Subscription, AsyncExitStack | None], Response]


async def answered(api: Api, call: Call, respond: Respond) -> Response:
    """Take the call in and let `respond` answer it. Whoever leaves an attached run that he has begun ends it."""
    if call.lifetime == "attached":
        await api.service.ping()  # an answer that could not be begun would use up the key
    taken = await take(api, call)
    held: AsyncExitStack | None = None
    if taken.fresh and taken.run.lifetime == "attached":  # entered without an await in between
        held = AsyncExitStack()
        await held.enter_async_context(api.service.attached(taken.run.id))
    async with _released(held):
        return respond(taken, await api.service.subscribe(taken.run.id), held)


@asynccontextmanager
async def _released(held: AsyncExitStack | None) -> AsyncIterator[None]:
    try:
        yield
    except BaseException:
        if held is not None:
            await held.aclose()
        raise
