"""Drafts: the unsent text of a chat, which the devices of a person share. Attachments are not part of it."""

from dataclasses import dataclass
from typing import Final

from holdfast.core.ids import OwnerId

NEW_CHAT: Final = "new"
"""The draft of a chat that does not exist yet."""
MAX_TEXT: Final = 100_000  # Characters


@dataclass(frozen=True, slots=True)
class Draft:
    owner: OwnerId
    session_id: str  # Or `NEW_CHAT`
    text: str  # Empty once it was sent: the row stays, so that its version never starts over
    version: int
    updated_at: float


@dataclass(frozen=True, slots=True)
class SentDraft:
    """The draft that a message was written as. Sending clears it, unless another device has changed it since."""

    session_id: str
    version: int
