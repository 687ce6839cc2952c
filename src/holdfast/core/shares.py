"""Share links: a share is a read-only snapshot of a chat, made once and never changed. What a snapshot contains:
`engine.html_export` (text) and `engine.html_recording`; when it ends: `engine.shares`."""

from dataclasses import dataclass
from typing import Final, Literal

from holdfast.core.ids import FileId, OwnerId, SessionId, ShareId
from holdfast.core.size_text import MIB

ShareKind = Literal["text", "recording"]
"""The messages as they are shown, or how each answer came about."""

MAX_SHARES: Final = 500  # Of one owner
MAX_SHARE_BYTES: Final = 24 * MIB
MAX_JOURNAL_BYTES: Final = 256 * MIB  # That are read for one recording
MAX_SHARED_BYTES: Final = 1024 * MIB  # Of all shares of one owner


@dataclass(frozen=True, slots=True)
class Share:
    """The row of a share. Its content is a stored file; of the token in its link, only the digest is known."""

    id: ShareId
    owner: OwnerId
    session_id: SessionId
    token_digest: str
    kind: ShareKind
    title: str  # Of the chat when it was shared
    with_reasoning: bool
    with_tools: bool
    with_files: bool
    file_id: FileId
    size: int
    created_at: float
    expires_at: float | None = None  # None: never
    last_opened_at: float | None = None
