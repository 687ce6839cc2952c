"""What is stored about programs: the session of each that belongs to a session of ours, and what each one offers."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from anyio import to_thread

from holdfast.agents.acp.session_state import AgentSessionState, SessionOptions
from holdfast.agents.session_links import SessionLink, SessionLinks, replace_file
from holdfast.core import lenient_json

_MAX_ALLOWED: Final = 100


@dataclass(frozen=True, slots=True)
class AcpSessionLink(SessionLink):
    cwd: str = ""
    context_used: int | None = None  # Tokens, as the program last reported them
    context_size: int | None = None
    allowed: Sequence[str] = ()  # Ids of the newest calls that the user allowed in that run and those it continues

    def with_allowed(self, call_id: str) -> "AcpSessionLink":
        return replace(self, allowed=[*(known for known in self.allowed if known != call_id), call_id][-_MAX_ALLOWED:])


def acp_session_links(workspaces: Path) -> SessionLinks[AcpSessionLink]:
    return SessionLinks(workspaces, AcpSessionLink)


@dataclass(frozen=True, slots=True)
class AgentStateFiles:
    """What each program offers in a new session, for chats in which it does not run yet."""

    root: Path

    async def read(self, agent: str) -> AgentSessionState:
        return await to_thread.run_sync(self._read, agent)

    async def write(self, agent: str, options: SessionOptions) -> None:
        await to_thread.run_sync(self._write, agent, options)

    def _path(self, agent: str) -> Path:
        return self.root / f"{agent}.agent-state.json"  # not the name of a session's file, which ends in .agent.json

    def _read(self, agent: str) -> AgentSessionState:
        try:
            return AgentSessionState.from_json(lenient_json.loads(self._path(agent).read_bytes()))
        except (OSError, ValueError, TypeError, KeyError):
            return AgentSessionState()

    def _write(self, agent: str, options: SessionOptions) -> None:
        known = self._read(agent)
        offered = options.offered(known)
        if offered != known:
            replace_file(self._path(agent), json.dumps(asdict(offered)))
