"""The values of a conversation: session, message, compaction. `core.message_tree` has the rules of the tree. What edits
do to them: `engine.transactions.session_edits`; which writes move `updated_at`: `engine.transactions.row_access`; when
a temporary one is deleted: `engine.transactions.run_endings.settle`."""

from dataclasses import dataclass, replace
from typing import Final, Literal

from holdfast.core.events import Failure, Usage
from holdfast.core.ids import MessageId, OwnerId, RunId, SessionId
from holdfast.core.parts import Json, Part
from holdfast.core.run import RecoveryState
from holdfast.core.transcript import MessageStatus, Transcript

Role = Literal["user", "assistant"]
API: Final = "openai"  # `source` in the settings of a session that a client of the OpenAI-compatible API started
COMPARE: Final = "compare"  # `source` in the settings of a session that belongs to a comparison


@dataclass(frozen=True, slots=True)
class Session:
    id: SessionId
    owner: OwnerId
    created_at: float
    updated_at: float  # Last activity: a turn accepted or settled, a tool finished; not a rename or a pin
    title: str = ""
    titled_by: Literal["nobody", "model", "person"] = "nobody"
    agent: str = "chat"
    model: str | None = None
    system: str | None = None
    settings: Json = None
    previous_session_id: SessionId | None = None
    pinned: bool = False
    archived: bool = False
    tags: tuple[str, ...] = ()
    project: str | None = None
    head: MessageId | None = None
    redo: tuple[MessageId, ...] = ()  # Heads that undo moved away from, the latest last; cleared by other moves
    version: int = 1
    deleted_at: float | None = None  # A deleted session is hidden at once, and erased when none of its runs is open

    @property
    def is_kept(self) -> bool:
        """False for a temporary session, which is deleted when its run ends."""
        return not isinstance(self.settings, dict) or self.settings.get("keep") is not False

    @property
    def is_from_api(self) -> bool:
        """Whether a client of the OpenAI-compatible API started it, rather than a person in the page."""
        return isinstance(self.settings, dict) and self.settings.get("source") == API

    @property
    def persona(self) -> str | None:
        """The id of the persona that was chosen for it, which may be deleted by now."""
        found = self.settings.get("persona") if isinstance(self.settings, dict) else None
        return found if isinstance(found, str) and found else None

    @property
    def cwd(self) -> str | None:
        """The directory that the user chose for an agent program to work in."""
        found = self.settings.get("cwd") if isinstance(self.settings, dict) else None
        return found if isinstance(found, str) and found else None

    @property
    def agent_options(self) -> dict[str, str | bool]:
        """What the user chose of an agent program's options, by the option's id."""
        found = self.settings.get("agent_options") if isinstance(self.settings, dict) else None
        items = found.items() if isinstance(found, dict) else ()
        return {name: value for name, value in items if isinstance(value, str | bool)}


@dataclass(frozen=True, slots=True)
class Message:
    id: MessageId
    owner: OwnerId
    session_id: SessionId
    role: Role
    parent_id: MessageId | None
    created_at: float
    run_id: RunId | None = None
    status: MessageStatus = "complete"
    parts: tuple[Part, ...] = ()
    reason: str | None = None
    error: Failure | None = None
    recovery: RecoveryState | None = None
    model: str | None = None
    usage: Usage | None = None
    key: str | None = None
    in_tree: bool = True
    last_seq: int = 0
    persona: Json = None  # Name and picture of who answered: `core.personas.shown`


def with_transcript(message: Message, folded: Transcript, recovery: RecoveryState | None) -> Message:
    return replace(
        message,
        recovery=recovery,
        parts=folded.parts,
        status=folded.status,
        reason=folded.reason or (folded.finish_reason if folded.is_cut_short else None),
        error=folded.error,
        usage=folded.usage,
        last_seq=folded.last_seq,
        model=message.model or folded.model,
    )


@dataclass(frozen=True, slots=True)
class Compaction:
    """A summary that stands for the path up to and including `message_id` in model input. The tree does not change."""

    session_id: SessionId
    owner: OwnerId
    message_id: MessageId
    summary: str
    created_at: float
