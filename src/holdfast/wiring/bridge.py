"""The engine, for those who must be made before it."""

from collections.abc import Sequence

from anyio import to_thread

from holdfast.core.errors import NotFound
from holdfast.core.ids import OwnerId, RunId, SessionId
from holdfast.core.parts import File
from holdfast.core.session import ModelInput
from holdfast.engine.engine import Engine
from holdfast.engine.preferences import Preferences
from holdfast.engine.service import Service
from holdfast.ports import Grant, Summariser


class Bridge:
    def __init__(self) -> None:
        self.engine: Engine | None = None

    @property
    def service(self) -> Service:
        assert self.engine is not None
        return self.engine.service

    @property
    def preferences(self) -> Preferences:
        assert self.engine is not None
        return self.engine.preferences

    async def grants(self, owner: OwnerId, sid: SessionId) -> Sequence[Grant]:
        return await self.preferences.grants(owner, sid)

    async def grant(self, tool: str, scope: str, owner: OwnerId, sid: SessionId | None) -> None:
        await self.preferences.grant(tool, scope, owner, sid)

    async def model_input(self, rid: RunId, owner: OwnerId) -> ModelInput:
        return await self.service.model_input(rid, owner)

    async def compact(self, sid: SessionId, summariser: Summariser, owner: OwnerId) -> None:
        await self.service.compact(sid, summariser, owner)

    async def read(self, file: File) -> bytes | None:
        """`agents.chat.files.FileReader`."""
        assert self.engine is not None
        assert self.engine.library is not None
        try:
            with await self.engine.library.open(await self.engine.library.file(file.file_id)) as content:
                return await to_thread.run_sync(content.read)
        except NotFound:
            return None
