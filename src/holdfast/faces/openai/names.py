"""Ids of this face. Each is made from one of ours and leads back to it, so that nothing has to be remembered."""

import hashlib
from typing import Final

from holdfast.core.ids import OwnerId, RunId, SessionId

_RUN: Final = "run_"
_SESSION: Final = "ses_"


def response(run: RunId) -> str:
    return f"resp_{run.removeprefix(_RUN)}"


def completion(run: RunId) -> str:
    return f"chatcmpl-{run.removeprefix(_RUN)}"


def run_of(response_id: str) -> RunId:
    """The run that a response is; a run's own id is taken too. Whether there is one is not looked at."""
    return RunId(_RUN + response_id.removeprefix("resp_").removeprefix("chatcmpl-").removeprefix(_RUN))


def conversation(session: SessionId) -> str:
    return f"conv_{session.removeprefix(_SESSION)}"


def session_of(conversation_id: str) -> SessionId:
    return SessionId(_SESSION + conversation_id.removeprefix("conv_").removeprefix(_SESSION))


def item(kind: str, run: RunId, index: int) -> str:
    """`msg_…_0`: the run, and the place in its output."""
    return f"{kind}_{run.removeprefix(_RUN)}_{index}"


def place_of(item_id: str) -> tuple[RunId, int] | None:
    """The inverse; None: it is no id of an output item."""
    body, _, index = item_id.partition("_")[2].rpartition("_")
    return (RunId(_RUN + body), int(index)) if body and index.isascii() and index.isdigit() and len(index) < 7 else None


def keyed_session(owner: OwnerId, key: str) -> SessionId:
    """The session that a call with this idempotency key begins: a repeat comes to the same one."""
    return SessionId(_SESSION + hashlib.sha256(f"{owner}\0{SALT}\0{key}".encode()).hexdigest()[:32])


SALT: Final = "openai"
