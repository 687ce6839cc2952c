"""Drafts: read and store the unsent text of a chat. What they do: `engine.drafts`."""

from holdfast.server import parameters as p
from holdfast.server.context import ApiContext
from holdfast.server.routing import Router
from holdfast.server.schemas import drafts as s

router = Router("drafts", "/api/drafts")


@router.get("/{sid}")
async def read_draft(api: ApiContext, sid: s.DraftChat) -> s.DraftResponse:
    """Read the unsent text of a session, or of the next new chat (`new`)."""
    return s.DraftResponse.model_validate(await api.engine.drafts.get(sid))


@router.put("/{sid}")
async def save_draft(
    api: ApiContext, sid: s.DraftChat, body: s.SaveDraftRequest, if_match: p.IfMatch = None
) -> s.DraftResponse:
    """Store the unsent text for other devices. With `If-Match`, the version that was read last (`0`: none), only if no
    other device has changed it since. It is in no export and no share; accepting a message with `draft` clears it."""
    version = p.expected_version(if_match)
    return s.DraftResponse.model_validate(await api.engine.drafts.put(sid, body.text, if_version=version))
