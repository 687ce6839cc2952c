"""Slow imports that happen in the background after the start: neither the start nor the first request waits for them.

Modules that need one of these import it inside a function. `tests/cli/test_start.py` fails if such an import is moved
to the top of a file that the server loads.
"""

from importlib import import_module
from typing import Final

import anyio
from anyio import to_thread

LATER: Final = ("aiohttp", "holdfast.memory.builtin_provider")
PAUSE: Final = 1.0
"""Seconds to wait first: an import holds the interpreter lock, and clients send requests as soon as the server
listens."""


async def warm_up(pause: float = PAUSE) -> None:
    await anyio.sleep(pause)
    for name in LATER:
        await to_thread.run_sync(import_module, name)
