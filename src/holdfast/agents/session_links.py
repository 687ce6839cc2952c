"""Which session of a program belongs to a session of ours, and up to which message it knows the conversation. What the
program is told of what it missed: `agents.prompts`."""

import json
import secrets
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Generic, TypeVar

from anyio import to_thread

from holdfast.agents.chat.workspaces import agent_session_file
from holdfast.core.ids import SessionId
from holdfast.ports.agent import Turn

L = TypeVar("L", bound="SessionLink")


@dataclass(frozen=True, slots=True)
class SessionLink:
    """Adapters of agents add fields of their own."""

    agent: str
    session_id: str  # The program's
    run_id: str  # The last run that it was prompted for
    message_id: str  # The answer of that run

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
class SessionLinks(Generic[L]):
    """Stored in files next to the workspaces, because a program's sessions are on this machine too. If a file is lost,
    the program gets a new session whose prompt contains the conversation."""

    root: Path
    kind: type[L]

    async def read(self, sid: SessionId) -> L | None:
        """The link, also one that another kind of agent wrote: of that, the fields that this kind has as well."""
        return await to_thread.run_sync(self._read, agent_session_file(self.root, sid))

    async def write(self, sid: SessionId, link: L) -> None:
        text = json.dumps(asdict(link))
        await to_thread.run_sync(replace_file, agent_session_file(self.root, sid), text)

    async def stored(self, sid: SessionId) -> str | None:
        """What the file has, for `restore`."""
        return await to_thread.run_sync(_read_text, agent_session_file(self.root, sid))

    async def restore(self, sid: SessionId, stored: str | None) -> None:
        path = agent_session_file(self.root, sid)
        if stored is None:
            await to_thread.run_sync(lambda: path.unlink(missing_ok=True))
        else:
            await to_thread.run_sync(replace_file, path, stored)

    def _read(self, path: Path) -> L | None:
        names = {known.name for known in fields(self.kind)}
        try:
            found = json.loads(_read_text(path) or "{}")
            return self.kind(**{name: value for name, value in found.items() if name in names})
        except (ValueError, TypeError, AttributeError):
            return None


def _read_text(path: Path) -> str | None:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError):
        return None


def replace_file(path: Path, text: str) -> None:
    """Readers see the old text or the new one, also while others replace the same file."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        fresh.write_text(text, "utf-8")
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
