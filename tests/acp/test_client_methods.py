"""Calls of a program with parameters of the wrong type are answered with the reason."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from acp.exceptions import RequestError

from holdfast.agents.acp.client_methods import ClientMethods

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "params",
    [
        {"command": 5},
        {"command": "sh", "args": 5},
        {"command": "sh", "args": [5]},
        {"command": "sh", "args": "x"},
        {"command": "sh", "args": ["a\0b"]},
        {"command": "a\0b"},
        {"command": "true", "env": 5},
        {"command": "true", "env": [5]},
        {"command": "true", "env": [{"name": "A", "value": 5}]},
        {"command": "true", "env": [{"name": "A\0B", "value": "x"}]},
        {"command": "true", "env": [{"name": "A=B", "value": "x"}]},
        {"command": "\ud800"},
        {"command": "true", "cwd": 5},
        {"command": "true", "cwd": "missing"},
        {"command": "true", "args": ["x" * 5_000_000]},
    ],
)
async def test_a_command_with_wrong_parameters_is_refused(tmp_path: Path, params: dict[str, Any]) -> None:
    """The program gets an error it can show, and no terminal is left behind."""
    methods = ClientMethods(tmp_path, {})
    create = methods.get("terminal/create")
    assert create is not None
    async with anyio.create_task_group() as tasks:
        methods.start(tasks)
        for _ in range(20):  # more often than there may be terminals
            with pytest.raises(RequestError) as caught:
                await create(params)
            assert caught.value.code == -32602
        methods.close()
