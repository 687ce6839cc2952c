"""Ids of OpenAI's objects. Each is derived from a Holdfast id and can be converted back, so none has to be stored."""

import hashlib
from typing import Final

from holdfast.core.errors import NotFoundError
from holdfast.core.ids import ApprovalId, OwnerId, RunId, SessionId

_RUN: Final = "run_"
_SESSION: Final = "ses_"
_APPROVAL: Final = "apr_"


def response_id(run: RunId) -> str:
    return f"resp_{run.removeprefix(_RUN)}"


def completion_id(run: RunId) -> str:
    return f"chatcmpl-{run.removeprefix(_RUN)}"


def run_id(response: str) -> RunId:
    """The run of a response or completion; a run's own id is accepted too. The run may not exist."""
    return RunId(_RUN + response.removeprefix("resp_").removeprefix("chatcmpl-").removeprefix(_RUN))


def conversation_id(session: SessionId) -> str:
    return f"conv_{session.removeprefix(_SESSION)}"


def session_id(conversation: str) -> SessionId:
    """The session of a conversation, which may not exist."""
    return SessionId(_SESSION + conversation.removeprefix("conv_").removeprefix(_SESSION))


def approval_request_id(approval: ApprovalId) -> str:
    return f"mcpr_{approval.removeprefix(_APPROVAL)}"


def approval_id(request: str) -> ApprovalId:
    """The approval of a request, which may not exist."""
    return ApprovalId(_APPROVAL + request.removeprefix("mcpr_").removeprefix(_APPROVAL))


def item_id(kind: str, run: RunId, index: int) -> str:
    """`msg_…_0`: the run, and the index in its output."""
    return f"{kind}_{item_holder(run)}_{index}"


def item_holder(run: RunId) -> str:
    """What the ids of a run's output items have in common."""
    return run.removeprefix(_RUN)


def parse_item_id(item: str) -> tuple[RunId, int]:
    """The run and the index. Raises NotFoundError if this is not the id of an output item."""
    run, _, index = item.partition("_")[2].rpartition("_")
    if not (run and index.isascii() and index.isdigit() and len(index) < 7):
        raise NotFoundError("item", item)
    return RunId(_RUN + run), int(index)


def session_of_key(owner: OwnerId, key: str) -> SessionId:
    """The session that a call with this idempotency key starts: a repeated call finds it."""
    return SessionId(_SESSION + hashlib.sha256(f"{owner}\0openai\0{key}".encode()).hexdigest()[:32])
