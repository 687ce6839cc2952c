"""A new data directory full of sessions that nobody had."""

from pathlib import Path

from holdfast.engine.seeding import Plan, Report, seed
from holdfast.storage.sqlite import open_embedded
from holdfast.system import SystemClock


async def seed_directory(path: Path, plan: Plan, report: Report = lambda done, total: None) -> None:
    clock = SystemClock()
    data, store, journal = open_embedded(path, clock)
    try:
        await seed(store, plan, clock.now(), report)
    finally:
        await journal.close()
        await store.close()
        data.close()
