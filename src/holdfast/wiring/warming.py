"""What no start waits for, and nobody's first call either: imported between the two, in the background.

Where one of these is used it is imported inside a function. A newcomer may move such an import to the top of its file:
`tests/cli/test_start.py` then says that a start has become slower.
"""

from importlib import import_module
from typing import Final

import anyio
from anyio import to_thread

LATER: Final = ("aiohttp", "jsonschema", "holdfast.agents.tools.fetch.gate", "holdfast.memory.notes")
PAUSE: Final = 1.0
"""Seconds. Importing holds the interpreter, and whoever waited for the server asks as soon as it listens."""


async def warm_up(pause: float = PAUSE) -> None:
    await anyio.sleep(pause)
    for name in LATER:
        await to_thread.run_sync(import_module, name)
