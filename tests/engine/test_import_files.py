"""The temporary files of imports."""

import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from holdfast.agents.scripted_agent import Say
from holdfast.engine.export_import import FileRules
from holdfast.server import chat_import
from holdfast.server.context import ApiContext
from tests.harness import World, running

pytestmark = pytest.mark.anyio


async def test_files_are_closed_in_threads(memory: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Freeing a file of gigabytes takes a tenth of a second, for which every stream would stand still."""
    closed_by: list[int] = []
    discard = chat_import._discard

    def record(*files: Any) -> None:
        closed_by.append(threading.get_ident())
        discard(*files)

    monkeypatch.setattr(chat_import, "_discard", record)
    async with running([Say("hello")], memory) as it:
        sid = (await it.turn()).session_id
        data = b"".join([piece async for piece in it.engine.export_import.export(sid)])
        context = SimpleNamespace(engine=it.engine, data_dir=tmp_path, import_limiter=anyio.CapacityLimiter(1))
        rules = FileRules(1000, lambda *_: None, str)

        async def body() -> AsyncIterator[bytes]:
            yield data

        api = cast(ApiContext, context)
        await chat_import.import_lines(api, rules, body(), converted=False)
        source = chat_import.ChatImportSource(api, rules, None, "chats")
        await source.receive(body())
        async with anyio.create_task_group() as tasks:
            source.start(tasks)
            while await source.next() is not None:
                pass
        assert len(closed_by) == 2
        assert threading.get_ident() not in closed_by
        source.close()
    assert os.listdir(tmp_path) == []
