"""Lets the run's model answer an MCP server that asks for a completion (sampling). The request has no tools, so it
cannot nest, and its cost counts as the run's. Its limits: `tools.mcp.sampling`; whether a person is asked:
`tools.mcp.server_requests`."""

from holdfast.agents.chat.run_log import RunLog
from holdfast.core.events import TextDelta, Usage
from holdfast.ports.agent import AgentError
from holdfast.ports.model import Media, Model, ModelRequest, UserMessage
from holdfast.ports.tool import SampledAnswer


async def answer_server(model: Model, log: RunLog, request: ModelRequest) -> SampledAnswer:
    content = (item for message in request.messages if isinstance(message, UserMessage) for item in message.content)
    if "images" not in model.info.abilities and any(isinstance(item, Media) for item in content):
        raise AgentError("bad-request", "The model cannot see images.")
    pieces: list[str] = []
    async with model.stream(request) as answer:
        async for deltas in answer:
            for delta in deltas:
                if isinstance(delta, TextDelta):
                    pieces.append(delta.text)
                elif isinstance(delta, Usage):
                    await log.write(delta)
    return SampledAnswer("".join(pieces), model.info.id, answer.finish_reason)
