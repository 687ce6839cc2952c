"""An MCP server for tests, as a program: `mcp_server.py FILE` on stdio, `mcp_server.py FILE FD [sse]` on a
listening socket, with the streamable or the older transport.

Effects are lines in FILE, so that a test can count them over any number of server processes.
"""

import os
import sys
from pathlib import Path
from typing import Annotated

from mcp.server.mcpserver import (
    AcceptedElicitation,
    Context,
    Elicit,
    ElicitationResult,
    Image,
    ListRoots,
    MCPServer,
    Resolve,
    Sample,
)
from mcp.server.mcpserver.prompts.base import AssistantMessage, UserMessage
from mcp.types import (
    CallToolResult,
    CreateMessageResult,
    ImageContent,
    ListRootsResult,
    ResourceLink,
    SamplingMessage,
    TextContent,
    ToolAnnotations,
)
from pydantic import BaseModel, Field

server = MCPServer("test", instructions="Add before you note.")
effects = Path(sys.argv[1])


def mark(line: str) -> None:
    with effects.open("a") as file:
        file.write(f"{line}\n")


@server.resource("notes://today", description="Of today")
def today() -> str:
    return "low water at noon"


@server.resource("notes://{day}")
def of_day(day: str) -> str:
    return f"nothing on {day}"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def note(text: str) -> str:
    """Write a line."""
    mark(text)
    return f"noted {text}"


@server.tool()
def die(text: str) -> str:
    """Have an effect, and take the server down before answering."""
    mark(text)
    os._exit(1)


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def die_once(text: str) -> str:
    """Take the server down the first time."""
    before = effects.exists()
    mark(text)
    if not before:
        os._exit(1)
    return "survived"


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("it did not work")


@server.tool(structured_output=False)
def show() -> CallToolResult:
    """Answer with all kinds of things."""
    image = Image(data=b"\x89PNG\r\n\x1a\n", format="png").to_image_content()
    assert isinstance(image, ImageContent)
    link = ResourceLink(name="notes", uri="file:///notes.txt")
    return CallToolResult(content=[TextContent(text="words"), image, link], is_error=False)


@server.tool(structured_output=False)
def shape() -> CallToolResult:
    """Answer with structure alone."""
    return CallToolResult(content=[], structured_content={"n": 1}, is_error=False)


@server.tool(name="odd.name/with ünusual letters")
async def odd(ctx: Context) -> str:
    """Report progress, then the process id and whether a secret came along."""
    await ctx.report_progress(1, 2, "half way")
    await ctx.report_progress(2, 2)
    return f"{os.getpid()} {os.environ.get('SECRET', 'none')} {os.environ.get('GIVEN', 'none')}"


class Berth(BaseModel):
    name: str = Field(max_length=20)
    nights: int = 1


def which_berth() -> Elicit[Berth]:
    return Elicit("Which berth?", Berth)


@server.tool(structured_output=False)
def book(berth: Annotated[ElicitationResult[Berth], Resolve(which_berth)]) -> str:
    """Ask the person for a berth."""
    return berth.data.model_dump_json() if isinstance(berth, AcceptedElicitation) else berth.action


def haiku() -> Sample:
    message = SamplingMessage(role="user", content=TextContent(text="A haiku about tides."))
    return Sample([message], max_tokens=100_000, system_prompt="Be brief.", temperature=0.5)


@server.tool(structured_output=False)
def recite(poem: Annotated[CreateMessageResult, Resolve(haiku)]) -> str:
    """Let the client's model write."""
    assert isinstance(poem.content, TextContent)
    return f"{poem.content.text} ({poem.model}, {poem.stop_reason})"


def directories() -> ListRoots:
    return ListRoots()


@server.tool(structured_output=False)
def where(roots: Annotated[ListRootsResult, Resolve(directories)]) -> str:
    """Tell which directories the client offers."""
    return " ".join(str(root.uri) for root in roots.roots) or "none"


@server.prompt(description="Plan a passage.")
def passage(port: str, boat: str = "dinghy") -> list[UserMessage | AssistantMessage]:
    return [UserMessage(f"From {port} by {boat}."), AssistantMessage("Which day?")]


if __name__ == "__main__":
    if len(sys.argv) == 2:
        server.run("stdio")
    else:
        import uvicorn

        app = server.sse_app() if sys.argv[3:] == ["sse"] else server.streamable_http_app()
        config = uvicorn.Config(app, fd=int(sys.argv[2]), log_level="critical")
        uvicorn.Server(config).run()
