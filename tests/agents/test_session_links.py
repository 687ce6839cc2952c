"""Links from our sessions to those of other programs, which agents of several kinds write to one file."""

import json
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from holdfast.agents.acp.stored_state import AcpSessionLink, acp_session_links
from holdfast.agents.chat.workspaces import agent_session_file
from holdfast.agents.gateway.agent import GatewaySessionLink
from holdfast.agents.session_links import SessionLinks, replace_file
from holdfast.core.ids import SessionId

pytestmark = pytest.mark.anyio
SID = SessionId("ses_1")
ACP = AcpSessionLink("hermes", "s1", "run_1", "msg_1", "/w", 10, 100, ["call"])
GATEWAY = GatewaySessionLink("gateway", "s2", "run_2", "msg_2", "remote_2", 7)


async def test_an_agent_reads_what_another_kind_wrote(tmp_path: Path) -> None:
    """X5: a chat may change its agent; what the other one keeps about its session is restored as it was."""
    acp, gateway = acp_session_links(tmp_path), SessionLinks(tmp_path, GatewaySessionLink)
    await acp.write(SID, ACP)
    before = await gateway.stored(SID)
    assert await gateway.read(SID) == GatewaySessionLink("hermes", "s1", "run_1", "msg_1")
    await gateway.write(SID, GATEWAY)
    assert await gateway.read(SID) == GATEWAY
    assert await acp.read(SID) == AcpSessionLink("gateway", "s2", "run_2", "msg_2")
    await gateway.restore(SID, before)
    assert await acp.read(SID) == ACP
    await gateway.restore(SID, None)
    assert await gateway.stored(SID) is None
    assert await acp.read(SID) is None


async def test_many_write_one_file_at_once(tmp_path: Path) -> None:
    """Sessions of one program share a file: each write succeeds, and the file has one of the texts, whole."""
    texts = [str(n) * 10_000 for n in range(10)]
    path = tmp_path / "state.json"

    async def write(text: str) -> None:
        for _ in range(20):
            await to_thread.run_sync(replace_file, path, text)

    async with anyio.create_task_group() as tg:
        for text in texts:
            tg.start_soon(write, text)
    stored, left = await to_thread.run_sync(lambda: (path.read_text(), list(tmp_path.iterdir())))
    assert stored in texts
    assert left == [path]


@pytest.mark.parametrize("stored", ["", "[]", "7", "null", "{", '{"agent": "a"}', "\ud800"])
async def test_a_damaged_link_is_none(tmp_path: Path, stored: str) -> None:
    """The program gets a new session."""
    agent_session_file(tmp_path, SID).write_bytes(stored.encode("utf-8", "surrogatepass"))
    assert await acp_session_links(tmp_path).read(SID) is None


async def test_links_of_earlier_versions_are_read(tmp_path: Path) -> None:
    """Each had the fields of all kinds."""
    fields = {"agent": "hermes", "session_id": "s1", "cwd": "/w", "run_id": "run_1", "message_id": "msg_1"}
    more = {"context_used": 10, "context_size": 100, "remote_run_id": None, "shown_before": 0, "allowed": ["call"]}
    agent_session_file(tmp_path, SID).write_text(json.dumps(fields | more))
    assert await acp_session_links(tmp_path).read(SID) == ACP
