"""The ACP agent: answers a turn by prompting a program that speaks the Agent Client Protocol.

The journal is what people saw; the program's own memory of a turn may be behind or ahead of it. So a replay is never
journaled, and after an interruption the program is told what was shown, which of its tools finished, which may have
run, and what the user decided."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from holdfast.agents import prompts
from holdfast.agents.acp.directories import DirectoryRules
from holdfast.agents.acp.pool import AgentPool
from holdfast.agents.acp.program import AgentProgram
from holdfast.agents.acp.stored_state import AcpSessionLink, AgentStateFiles, acp_session_links
from holdfast.agents.acp.turn import AcpTurn, RefusedError, StaleSessionError
from holdfast.agents.chat.attachments import FileReader
from holdfast.agents.chat.workspaces import workspace
from holdfast.agents.recorded_changes import run_recorded
from holdfast.core import chat_settings
from holdfast.core.errors import InvalidInputError
from holdfast.core.session import Session
from holdfast.core.transcript import has_output
from holdfast.ports.agent import AgentError, AgentOutput, Turn
from holdfast.ports.tool import ChangeRecorder

if TYPE_CHECKING:
    from holdfast.agents.acp.connection import AgentConnection

log = logging.getLogger("holdfast.agents")


@dataclass(frozen=True, slots=True)
class AcpAgent:
    """Its runs do not park: while a person decides, the program waits, so its process must stay alive."""

    program: AgentProgram
    pool: AgentPool
    files: FileReader
    workspaces: Path
    directories: DirectoryRules
    now: Callable[[], float]  # Wall time in seconds
    states: AgentStateFiles
    on_title: Callable[[Turn, str], Awaitable[None]] | None = None
    """Called with the program's own title for the conversation."""
    record_changes: Callable[[Turn, Path], ChangeRecorder | None] = lambda turn, directory: None
    can_park: bool = False
    can_resume: bool = True
    can_steer: bool = False

    async def run(self, turn: Turn, out: AgentOutput) -> str | None:
        link = await acp_session_links(self.workspaces).read(turn.session.id)
        begun = link is not None and link.was_prompted_for(turn)
        try:
            return await self._answer(turn, out, begun, fresh=False)
        except StaleSessionError:
            return await self._answer(turn, out, begun, fresh=True)

    async def _answer(self, turn: Turn, out: AgentOutput, begun: bool, *, fresh: bool) -> str | None:
        """`begun`: the program was already prompted for this turn. `fresh`: use a new session of the program, even if
        it has one."""
        cwd = await self._directory(turn.session)
        connection = await self.pool.acquire(turn.session.id, self.program, cwd)
        note = partial(self._note_allowed, turn.session)
        acp_turn = AcpTurn(self.program, self.pool.limits, self.now, connection, turn, out, note)
        try:
            known = not fresh and await self._has_session(connection, turn)
            blocks = await self._prompt(connection, turn, begun, known=known)
            await connection.apply_options(turn.session.agent_options)
            try:
                finish_reason = await run_recorded(self.record_changes(turn, cwd), partial(acp_turn.run, blocks))
            except RefusedError as error:
                if not known:
                    raise
                raise StaleSessionError(error.code, error.message) from None
        except BaseException:
            if not acp_turn.ended_cleanly:
                connection.close()
            raise
        finally:
            self.pool.release(connection)
        self.pool.note_problem(self.program, None)
        try:  # the answer is complete, whether or not this can be stored for the next turn
            await self.states.write(self.program.name, connection.options)
            await self._note_context(turn.session, acp_turn.translator.context)
        except OSError as error:
            log.warning("What agent %s offers could not be stored: %s", self.program.name, error)
        if acp_turn.translator.title and self.on_title is not None:
            await self.on_title(turn, acp_turn.translator.title)
        return finish_reason

    async def _note_context(self, session: Session, reported: tuple[int, int] | None) -> None:
        links = acp_session_links(self.workspaces)
        link = await links.read(session.id)
        if link is not None and reported is not None:
            used, size = reported
            await links.write(session.id, replace(link, context_used=used, context_size=size))

    async def _note_allowed(self, session: Session, call_id: str) -> None:
        links = acp_session_links(self.workspaces)
        link = await links.read(session.id)
        if link is not None:
            await links.write(session.id, link.with_allowed(call_id))

    async def _directory(self, session: Session) -> Path:
        """The one that the user chose, checked again: the rules, the disk or the server may be others by now."""
        if session.cwd is None:
            return self.program.cwd or workspace(self.workspaces, session.id)
        try:
            return await to_thread.run_sync(self.directories.resolve, session.cwd)
        except InvalidInputError as error:
            raise AgentError("agent-directory", f"The agent cannot work in {session.cwd}: {error.problem}.") from None

    async def _has_session(self, connection: "AgentConnection", turn: Turn) -> bool:
        link = await acp_session_links(self.workspaces).read(turn.session.id)
        if link is None or (link.agent, link.cwd) != (self.program.name, str(connection.cwd)) or not link.knows(turn):
            return False
        if connection.session_id is not None:
            return connection.session_id == link.session_id
        return await connection.load_session(link.session_id)

    async def _prompt(
        self, connection: "AgentConnection", turn: Turn, begun: bool, *, known: bool
    ) -> list[dict[str, Any]]:
        """The content blocks of the prompt. Opens a new session unless the program has the conversation in one."""
        links = acp_session_links(self.workspaces)
        if not known or connection.session_id is None:
            await connection.new_session()
        assert connection.session_id is not None
        link = await links.read(turn.session.id)
        context = (None, None) if link is None or not known else (link.context_used, link.context_size)
        allowed = () if link is None or not begun else link.allowed
        prompted = AcpSessionLink(
            self.program.name,
            connection.session_id,
            turn.run.id,
            turn.run.message_id,
            str(connection.cwd),
            *context,
            allowed=allowed,
        )
        await links.write(turn.session.id, prompted)
        question = prompts.question_of(turn)
        history = None if known else prompts.history_text(turn.input, question)
        blocks = [prompts.text_block(history)] if history else []
        if begun or has_output(turn.transcript.parts) or turn.transcript.lost:
            told = prompts.interruption_text(turn.transcript, turn.decisions, question, frozenset(allowed))
            return [*blocks, prompts.text_block(told)]
        chat = chat_settings.of_session(turn.session, turn.preferences, turn.run.settings)
        system = None if known else chat.get("system")
        if system:
            blocks.insert(0, prompts.text_block(system))
        return blocks + await prompts.content_blocks(self.files, question, images=connection.takes_images)
