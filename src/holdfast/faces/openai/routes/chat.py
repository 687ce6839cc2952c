"""Chat completions. Each is a session whose past came with the call."""

from contextlib import AsyncExitStack

from starlette.responses import Response

from holdfast.core.transcript import Transcript
from holdfast.engine.book.accept import Accepted
from holdfast.engine.feed import Subscription
from holdfast.faces.http.api import Api, Key
from holdfast.faces.http.routing import Router
from holdfast.faces.openai import chunks, items, names, requests, standing, targets, wishes
from holdfast.faces.openai import described as d
from holdfast.faces.openai.answering import ChatStream, TranslatedSource, WholeAnswer, as_json, failed_run
from holdfast.faces.openai.errors import Wrong
from holdfast.faces.openai.holding import LifetimeHeader, answered, lifetime
from holdfast.faces.openai.requests import ChatIn
from holdfast.faces.openai.said import Script
from holdfast.faces.openai.taking import Call


def routes(api: Api) -> Router:
    router = Router("openai", "/v1/chat/completions", d.ERRORS)

    @router.post("", response_model=d.Completion, responses={200: d.STREAM})
    async def chat_completion(body: ChatIn, key: Key = None, lasts: LifetimeHeader = None) -> Response:
        """A turn of a conversation that comes with the call. It ends with its client, unless its lifetime is detached;
        the answer's headers name the run."""
        call = await _call(api, body, key, lasts)
        own_tools = call.target.agent != targets.DIRECT

        def respond(taken: Accepted, subscription: Subscription, held: AsyncExitStack | None) -> Response:
            run = taken.run
            kind = "chat.completion.chunk" if body.stream else "chat.completion"
            base = chunks.about(names.completion(run.id), int(run.created_at), standing.model_of(run), kind)
            headers = standing.headers(run)

            def render(told: Transcript) -> Response:
                failed = chunks.failure(told.status, told.error)
                if failed is not None:
                    return failed_run(failed, headers)
                return as_json(200, chunks.whole(base, told, own_tools=own_tools), headers)

            if not body.stream:
                return WholeAnswer(subscription, render, held)
            usage = bool(body.stream_options and body.stream_options.include_usage)
            translator = chunks.ChatChunks(base, include_usage=usage, own_tools=own_tools)
            source = TranslatedSource(subscription, translator, attached=held is not None)
            return ChatStream(source, translator, api.limits.line, held, headers)

        return await answered(api, call, respond)

    return router


async def _call(api: Api, body: ChatIn, key: str | None, lasts: str | None) -> Call:
    ignored = requests.judge(body)
    target = await targets.find(api, body.model)
    wished = wishes.of_chat(body, target)
    script = items.read_chat(body.messages, Script("messages"))
    past, last = script.ended()
    system = "\n\n".join(script.system) or None
    ends = lifetime(lasts, "attached")
    if body.store is False and ends == "detached":
        raise Wrong("store", "What goes on without its client has to be stored. Leave out 'store', or be attached.")
    ignored += [*wished.ignored, *script.moved]
    told = standing.echo(body, target.name, ignored)
    settings = {**wished.settings, "instructions": system, "openai": told}
    return Call(
        target,
        system,
        past,
        last,
        settings,
        ["chat", body.model_dump(mode="json", exclude_unset=True)],
        key,
        ends,
        keep=body.store is not False,
    )
