"""Drafts as rows. A version decides between devices: whoever writes must have seen the newest text."""

from holdfast.core.drafts import NEW_CHAT, Draft, SentDraft
from holdfast.core.errors import VersionMismatchError
from holdfast.core.ids import OwnerId, SessionId
from holdfast.engine.transactions.row_access import get_session
from holdfast.ports.store import Tx


def get(tx: Tx, sid: str, owner: OwnerId) -> Draft:
    """The draft of a chat; one with version 0 if there was none yet."""
    if sid != NEW_CHAT:
        get_session(tx, SessionId(sid), owner)
    return tx.draft(owner, sid) or Draft(owner, sid, "", 0, tx.now)


def put(tx: Tx, sid: str, owner: OwnerId, text: str, if_version: int | None) -> Draft:
    """Store the text. VersionMismatchError: it has changed since the version that the writer has seen."""
    found = get(tx, sid, owner)
    if if_version is not None and found.version != if_version:
        raise VersionMismatchError(if_version, found.version)
    if text == found.text:
        return found
    return _write(tx, found, text)


def clear_sent(tx: Tx, owner: OwnerId, sid: SessionId, sent: SentDraft | None) -> None:
    """Clear the draft that a message of this session was written as. A client that still saves the text with the
    version before is refused, also if it had not been saved at all."""
    if sent is None or sent.session_id not in (sid, NEW_CHAT):
        return
    found = get(tx, sent.session_id, owner)
    if found.version == sent.version:
        _write(tx, found, "")


def _write(tx: Tx, draft: Draft, text: str) -> Draft:
    draft = Draft(draft.owner, draft.session_id, text, draft.version + 1, tx.now)
    tx.put_draft(draft)
    return draft
