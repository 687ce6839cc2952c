"""The agent of a gateway: answers a turn with a run of Hermes' gateway, in the session of Hermes that the chat goes on
with.

A run's events are one queue in the gateway's memory for one reader: this is the reader, and it never connects again.
What it has lost is asked for once, when the run continues: the state of the earlier run and the session's messages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
from anyio import to_thread

from holdfast.agents import prompts
from holdfast.agents.chat.attachments import FileReader
from holdfast.agents.gateway import session_messages
from holdfast.agents.gateway.client import GatewayClient
from holdfast.agents.gateway.turn import GatewayTurn
from holdfast.agents.message_text import parts_as_text
from holdfast.agents.permissions import allowed_later
from holdfast.agents.session_links import SessionLink, SessionLinks
from holdfast.core import chat_settings
from holdfast.core import events as ev
from holdfast.core.session import Message, Session
from holdfast.core.transcript import has_output
from holdfast.ports.agent import AgentError, AgentOutput, Turn

_APP: Final = "hermes"  # In the origin of a chat that was imported from Hermes
_MAX_ID: Final = 200
_POLL: Final = 0.25  # Seconds between two looks at a run that was told to stop
_OVER: Final = ("completed", "failed", "cancelled")


class _Session(NamedTuple):
    """A session of Hermes, its messages, and our message up to which it knows the conversation."""

    id: str
    messages: Sequence[Any]
    known: str


@dataclass(frozen=True, slots=True)
class GatewaySessionLink(SessionLink):
    remote_run_id: str | None = None  # The run of the gateway that answers our run; None: not known
    shown_before: int = 0  # Characters of the answer's text that were shown when that began


class _NotStartedError(Exception):
    """The gateway refused to start a run. After any other failure it may have started one."""

    def __init__(self, reason: AgentError) -> None:
        super().__init__(reason.message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class GatewayAgent:
    """Its runs do not park: the gateway's run waits for the answer, and its events have this reader alone."""

    client: GatewayClient
    files: FileReader
    workspaces: Path
    now: Callable[[], float]  # Wall time in seconds
    can_park: bool = False
    can_resume: bool = True
    can_steer: bool = False

    @property
    def _name(self) -> str:
        return self.client.gateway.name

    async def run(self, turn: Turn, out: AgentOutput) -> str | None:
        links = SessionLinks(self.workspaces, GatewaySessionLink)
        link = await links.read(turn.session.id)
        earlier = link if link is not None and link.agent == self._name else None
        status = None if earlier is None else await self._end_earlier_run(earlier)
        session = await self._find_session(turn, link)
        begun = earlier is not None and earlier.was_prompted_for(turn)
        allowed = bool(allowed_later(turn.transcript.parts, turn.decisions))
        if session and earlier and earlier.remote_run_id and begun and status == "completed" and not allowed:
            lost = (session.messages, turn.transcript.parts, earlier.remote_run_id, earlier.shown_before)
            rest = await to_thread.run_sync(session_messages.rest_of_answer, *lost)
            await _write_all(out, [ev.StepStarted(turn.transcript.steps), *rest])
            return "stop"
        body = await self._request(turn, session, begun=begun)
        linked = GatewaySessionLink(
            self._name,
            session.id if session else "",
            turn.run.id,
            turn.run.message_id,
            shown_before=session_messages.shown_text(turn.transcript.parts),
        )
        before = await links.stored(turn.session.id)
        await links.write(turn.session.id, linked)  # first: the gateway may begin, whatever becomes of us
        gateway_turn = GatewayTurn(self.client, self.now, turn, out)

        async def note_started(run_id: str) -> None:
            started = replace(linked, session_id=linked.session_id or run_id, remote_run_id=run_id)
            await links.write(turn.session.id, started)

        try:
            return await gateway_turn.run(partial(self._start_run, body), note_started)
        except _NotStartedError as error:
            await links.restore(turn.session.id, before)
            raise error.reason from None
        except AgentError:
            if session is not None and not gateway_turn.has_output:  # a retry goes on in the session too
                failed = replace(linked, message_id=session.known, remote_run_id=gateway_turn.run_id)
                await links.write(turn.session.id, failed)
            raise

    async def _start_run(self, body: Mapping[str, Any]) -> str:
        answer = await self.client.start_run(body)
        run_id = _id(answer.data.get("run_id"))
        if answer.status not in (200, 202) or run_id is None:
            raise _NotStartedError(self.client.refused("start a run", answer))
        return run_id

    async def _end_earlier_run(self, link: GatewaySessionLink) -> str | None:
        """How the last run in the session ended; None if the gateway does not know it any more. One that still works,
        with nobody who reads its events, is stopped: two runs in one session would mix their messages."""
        if link.remote_run_id is None:
            return None
        answer = await self.client.run_status(link.remote_run_id)
        if self._is_over(answer.status, answer.data):
            return _status(answer.data)
        await self.client.stop_run(link.remote_run_id)
        with anyio.move_on_after(self.client.limits.stop):
            while True:
                answer = await self.client.run_status(link.remote_run_id)
                if self._is_over(answer.status, answer.data):
                    return _status(answer.data)
                await anyio.sleep(_POLL)
        raise self.client.failure("is still working on the last message. Try again in a minute", "agent-busy")

    def _is_over(self, status: int, data: Mapping[str, Any]) -> bool:
        if status not in (200, 404):
            raise self.client.failure(f"did not report the state of the last run (status {status})")
        return status == 404 or data.get("status") in _OVER

    async def _find_session(self, turn: Turn, link: GatewaySessionLink | None) -> _Session | None:
        """The session of Hermes that is this conversation: that of the last turn, or the one that the chat was imported
        from. The gateway names the tip of a chain that compaction made. None: it needs a new one."""
        if link is None:
            wanted, known = _origin(turn.session)
        else:
            wanted, known = (link.session_id, link.message_id) if link.agent == self._name else ("", "")
        prompted_for = link is not None and link.was_prompted_for(turn)
        if not wanted or not (prompted_for or _follows(turn, known)):
            return None
        answer = await self.client.messages(wanted)
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise self.client.refused("list the messages of its session", answer)
        rows = answer.data.get("data")
        found = _id(answer.data.get("session_id")) or wanted
        return _Session(found, rows if isinstance(rows, list) else [], known)

    async def _request(self, turn: Turn, session: _Session | None, *, begun: bool) -> Mapping[str, Any]:
        question = prompts.question_of(turn)
        texts: list[str] = []
        if session is not None:
            texts += await to_thread.run_sync(_unanswered, turn, question, session)
        elif history := prompts.history_text(turn.input, question):
            texts.append(history)
        if begun or has_output(turn.transcript.parts) or turn.transcript.lost:
            texts.append(prompts.interruption_text(turn.transcript, turn.decisions, question))
        else:
            texts += [block["text"] for block in await prompts.content_blocks(self.files, question, images=False)]
        body: dict[str, Any] = {"input": "\n\n".join(texts)}
        if session is not None:
            body["session_id"] = session.id
            body["conversation_history"] = await to_thread.run_sync(session_messages.conversation, session.messages)
        system = chat_settings.of_session(turn.session, turn.preferences, turn.run.settings).get("system")
        return body | {"instructions": system} if system else body


def _origin(session: Session) -> tuple[str, str]:
    """The session that the chat was imported from, and the last message of the import; empty if there is none."""
    origin = session.settings.get("origin") if isinstance(session.settings, dict) else None
    if not isinstance(origin, dict) or origin.get("app") != _APP:
        return "", ""
    return _id(origin.get("id")) or "", _id(origin.get("head")) or ""


def _follows(turn: Turn, known: str) -> bool:
    """Whether the user's message follows that answer: nothing was answered since."""
    question = prompts.question_of(turn)
    answers = [message.id for message in turn.input.messages if message.role == "assistant"]
    return (question is not None and question.parent_id == known) or answers[-1:] == [known]


def _unanswered(turn: Turn, question: Message | None, session: _Session) -> list[str]:
    """The user's messages before the question that got no answer, and did not reach the session."""
    texts: list[str] = []
    for message in turn.input.messages:
        if question is not None and message.id == question.id:
            break
        texts = [] if message.role == "assistant" else [*texts, parts_as_text(message.parts)]
    told = session_messages.user_texts(session.messages)
    return [text for text in texts if text.strip() not in told]


def _id(value: Any) -> str | None:
    """An id that can be part of a path."""
    usable = isinstance(value, str) and 0 < len(value) <= _MAX_ID and value.isprintable() and value not in (".", "..")
    return value if usable else None


def _status(data: Mapping[str, Any]) -> str | None:
    status = data.get("status")
    return status if isinstance(status, str) else None


async def _write_all(out: AgentOutput, events: Sequence[ev.Event]) -> None:
    for event in events:
        if isinstance(event, ev.ToolStarted | ev.ToolFinished):
            await out.commit(event)
        else:
            await out.write(event)
