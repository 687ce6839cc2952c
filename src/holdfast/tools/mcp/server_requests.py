"""What MCP servers ask of their client while a tool runs: the directories they may use, questions to the person, and
answers of the run's model. How long a person has: `agents.chat.agent.ChatLimits`.

A connection is shared by all sessions, and the protocol does not say which call a server asks for. So a question
belongs to the call under way if all calls under way are of one session; otherwise the server is told to try again.
Questions are answered in the task of their call: they end with the run.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
from anyio import to_thread

from holdfast.core.form_schema import answer_problem, form_problem
from holdfast.ports.agent import AgentError, InputAnswer
from holdfast.ports.tool import PersonQuestion, ToolContext
from holdfast.tools.mcp import sampling
from holdfast.tools.workspace.private_directory import create_private_directory

T = TypeVar("T")

_MAX_PENDING: Final = 8  # Questions of one call that wait for their turn
_MAX_QUESTIONS: Final = 20  # Of one call
_MAX_MESSAGE: Final = 4_000  # Characters
_INVALID_PARAMS: Final = -32602
_REJECTED: Final = -1  # The code of the specification for a rejection by the person
_BUSY: Final = "Calls of several sessions are in progress, so the request cannot be assigned to one. Try again."
_NO_CALL: Final = "There is no tool call in progress that this request could belong to."


@dataclass(eq=False)
class _Pending:
    work: Callable[[], Awaitable[Any]]
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    done: anyio.Event = field(default_factory=anyio.Event)
    result: Any = None
    error: AgentError | None = None


class ActiveCall:
    """A tool call under way. Its time limit does not run while somebody thinks about an answer."""

    def __init__(self, context: ToolContext, limit: float) -> None:
        self.context = context
        self._limit = limit
        self._scope = anyio.CancelScope()
        self._asked = 0
        self._failure: Exception | None = None
        self._sending, self._pending = anyio.create_memory_object_stream[_Pending](_MAX_PENDING)

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """The result of `work`, during which questions are answered. Raises TimeoutError."""
        outcome: list[T] = []
        async with self._sending, self._pending, anyio.create_task_group() as tasks:
            tasks.start_soon(self._answer)
            try:
                with anyio.fail_after(self._limit) as self._scope:
                    outcome.append(await work())
            except Exception as error:  # noqa: BLE001 - raised below, where the task group does not wrap it
                self._failure = self._failure or error
            tasks.cancel_scope.cancel()
        if self._failure is not None:
            raise self._failure
        return outcome[0]

    async def ask(self, work: Callable[[], Awaitable[T]]) -> T | None:
        """The result of `work`, which the task of the call does. None if the call ends before, or asks too much. A
        cancelled caller withdraws it. Raises AgentError."""
        pending = _Pending(work)
        self._asked += 1
        try:
            if self._asked > _MAX_QUESTIONS:
                return None
            self._sending.send_nowait(pending)
        except (anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return None
        try:
            await pending.done.wait()
        finally:
            pending.scope.cancel()
        if pending.error is not None:
            raise pending.error
        result: T | None = pending.result
        return result

    async def _answer(self) -> None:
        current: _Pending | None = None
        try:
            async for current in self._pending:
                self._scope.deadline = float("inf")
                with current.scope:
                    try:
                        current.result = await current.work()
                    except AgentError as error:
                        current.error = error
                current.done.set()
                self._scope.deadline = anyio.current_time() + self._limit
        except Exception as error:  # noqa: BLE001 - the journal or the run failed; `run` raises it
            self._failure = error
            self._scope.cancel()
        finally:
            with suppress(anyio.WouldBlock, anyio.EndOfStream):  # wake the callers that still wait
                while True:
                    if current is not None:
                        current.done.set()
                    current = self._pending.receive_nowait()
            self._pending.close()


class ServerRequests:
    """The callbacks of one connection."""

    def __init__(self, server: str, *, is_local: bool) -> None:
        self._server = server
        self._is_local = is_local  # A server on another machine has no use for a path on this one
        self._calls: list[ActiveCall] = []

    @contextmanager
    def active(self, call: ActiveCall) -> Iterator[None]:
        self._calls.append(call)
        try:
            yield
        finally:
            self._calls.remove(call)

    def _workspaces(self) -> set[Path]:
        return {call.context.workspace for call in self._calls}

    def _call(self) -> ActiveCall | None:
        return self._calls[-1] if len(self._workspaces()) == 1 else None

    async def list_roots(self, context: Any) -> Any:
        """The workspace of the session whose call is under way; nothing if there is none, or more than one."""
        from mcp.types import ListRootsResult, Root
        from pydantic import FileUrl

        found = self._workspaces() if self._is_local else set()
        if len(found) != 1:
            return ListRootsResult(roots=[])
        (workspace,) = found
        await to_thread.run_sync(create_private_directory, workspace)
        return ListRootsResult(roots=[Root(uri=FileUrl(workspace.resolve().as_uri()), name="Workspace")])

    async def elicit(self, context: Any, params: Any) -> Any:
        """Shows a form to the person. A form that is too large or nested, and a link to open, are refused."""
        from mcp.types import ElicitResult, ErrorData

        if params.mode != "form":
            return ErrorData(code=_INVALID_PARAMS, message="Only the form mode is supported.")
        schema: dict[str, Any] = dict(params.requested_schema)
        problem = form_problem(schema)
        if problem is not None:
            return ErrorData(code=_INVALID_PARAMS, message=f"The requested schema cannot be shown: {problem}.")
        question = PersonQuestion(self._server, "form", params.message[:_MAX_MESSAGE], schema)
        answer = await self._ask(self._call(), question)
        if isinstance(answer, str):
            return ErrorData(code=_INVALID_PARAMS, message=answer)
        if answer.action != "accept":
            return ElicitResult(action=answer.action)
        content: Any = {name: value for name, value in answer.content.items() if value is not None}
        fits = answer_problem(schema, content) is None
        return ElicitResult(action="accept", content=content) if fits else ElicitResult(action="cancel")

    async def sample(self, context: Any, params: Any) -> Any:
        """Lets the run's model answer, if the person allows it after seeing what it is asked."""
        from mcp.types import CreateMessageResult, ErrorData, TextContent

        try:
            request = sampling.read_request(params)
        except ValueError as error:
            return ErrorData(code=_INVALID_PARAMS, message=str(error))
        call = self._call()
        answer = await self._ask(call, PersonQuestion(self._server, "sampling", sampling.preview(request)))
        if isinstance(answer, str):
            return ErrorData(code=_INVALID_PARAMS, message=answer)
        if answer.action != "accept":
            return ErrorData(code=_REJECTED, message="The user rejected the sampling request.")
        if call is None or call.context.ask_model is None:
            return ErrorData(code=_INVALID_PARAMS, message=_NO_CALL)
        try:
            sampled = await call.ask(partial(call.context.ask_model, request))
        except AgentError as error:
            return ErrorData(code=_REJECTED, message=error.message)
        if sampled is None:
            return ErrorData(code=_INVALID_PARAMS, message=_NO_CALL)
        reason = "maxTokens" if sampled.finish_reason == "length" else "endTurn"
        return CreateMessageResult(
            role="assistant", content=TextContent(text=sampled.text), model=sampled.model, stop_reason=reason
        )

    async def _ask(self, call: ActiveCall | None, question: PersonQuestion) -> InputAnswer | str:
        """The person's answer, or why nobody was asked."""
        if call is None:
            return _BUSY if self._calls else _NO_CALL
        if call.context.ask_person is None:
            return InputAnswer("cancel")
        return await call.ask(partial(call.context.ask_person, question)) or InputAnswer("cancel")
