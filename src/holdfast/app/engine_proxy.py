"""The engine for agents and memory, which are built before it and call it later: a proxy that breaks the construction
cycle."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from anyio import to_thread

from holdfast.core.errors import NotFoundError
from holdfast.core.ids import OwnerId, SessionId
from holdfast.core.model_input import ModelInput
from holdfast.core.parts import FilePart, Json
from holdfast.core.run import Run
from holdfast.engine.engine import Engine
from holdfast.ports.agent import Summarizer, Turn
from holdfast.ports.model import Media
from holdfast.ports.store import ToolGrant

T = TypeVar("T")


class EngineProxy:
    """Also implements `GrantStore`, `History` and `ToolFileStore` for agents."""

    engine: Engine  # Set as soon as it exists

    async def retry_storage(self, work: Callable[[], Awaitable[T]]) -> T:
        """The result of `work`, which a run needs: storage that is away is waited for, as for the run's output."""
        return await self.engine.retry_storage(work)

    async def settings(self, owner: OwnerId) -> Mapping[str, Json]:
        return await self.retry_storage(lambda: self.engine.preferences.settings(owner))

    async def grants(self, owner: OwnerId, sid: SessionId) -> Sequence[ToolGrant]:
        return await self.retry_storage(lambda: self.engine.preferences.grants(owner, sid))

    async def grant(self, tool: str, scope: str, owner: OwnerId, sid: SessionId | None) -> None:
        await self.retry_storage(lambda: self.engine.preferences.grant(tool, scope, owner, sid))

    async def reload(self, turn: Turn) -> ModelInput:
        return await self.retry_storage(lambda: self.engine.runs.model_input(turn.run.id, turn.run.owner))

    async def compact(self, turn: Turn, summarizer: Summarizer) -> None:
        await self.engine.sessions.compact(turn.session.id, summarizer, turn.run.owner, in_run=True)

    async def read(self, file: FilePart) -> bytes | None:
        return await self.retry_storage(lambda: self._read(file))

    async def store_for_run(self, run: Run, media: Media) -> FilePart:
        attachments = self.engine.attachments
        attachments.require_space(len(media.data))
        add = partial(attachments.add_for_run, run, media.name, media.media_type, media.data)
        return await self.retry_storage(add)

    async def _read(self, file: FilePart) -> bytes | None:
        attachments = self.engine.attachments
        try:
            with await attachments.open(await attachments.file(file.file_id)) as content:
                return await to_thread.run_sync(content.read)
        except NotFoundError:
            return None
