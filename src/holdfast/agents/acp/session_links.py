"""Which session of a program belongs to a session of ours, and up to which message it knows the conversation."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from anyio import to_thread

from holdfast.agents.acp.session_state import AgentSessionState, SessionOptions
from holdfast.agents.chat.workspaces import agent_session_file
from holdfast.core.ids import SessionId
from holdfast.models import lenient_json
from holdfast.ports.agent import Turn


@dataclass(frozen=True, slots=True)
class SessionLink:
    agent: str
    session_id: str  # The program's
    cwd: str
    run_id: str  # The last run that it was prompted for
    message_id: str  # The answer of that run
    context_used: int | None = None  # Tokens, as the program last reported them
    context_size: int | None = None

    def knows(self, turn: Turn) -> bool:
        """Whether the program's session is the conversation up to this turn: not after a retry, an edit or an undo."""
        if self.was_prompted_for(turn):
            return True
        answers = [message.id for message in turn.input.messages if message.role == "assistant"]
        return bool(answers) and answers[-1] == self.message_id

    def was_prompted_for(self, turn: Turn) -> bool:
        """Whether the program may have begun to answer, even if the journal has nothing of it: the link is written
        before the prompt is sent."""
        return self.run_id in (turn.run.id, turn.run.continues)


@dataclass(frozen=True, slots=True)
class SessionLinks:
    """Stored in files next to the workspaces, because a program's sessions are on this machine too. If a file is lost,
    the program gets a new session whose prompt contains the conversation."""

    root: Path

    async def read(self, sid: SessionId) -> SessionLink | None:
        return await to_thread.run_sync(self._read, agent_session_file(self.root, sid))

    async def write(self, sid: SessionId, link: SessionLink) -> None:
        await to_thread.run_sync(self._write, agent_session_file(self.root, sid), link)

    def _read(self, path: Path) -> SessionLink | None:
        try:
            return SessionLink(**json.loads(path.read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def _write(self, path: Path, link: SessionLink) -> None:
        _replace(path, json.dumps(asdict(link)))


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
            _replace(self._path(agent), json.dumps(asdict(offered)))


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text, "utf-8")
    os.replace(temporary, path)
