"""The soak: `python -m tests.crash --kills 500 [--seed S]`. Directory after directory, eight kills each."""

import argparse
import sys
import tempfile
import time
import traceback
from pathlib import Path
from secrets import randbelow

from tests.crash.random_restarts import RandomLives
from tests.fork_server import ForkServer, ServerForker

KILLS_EACH = 8


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description="Kill real servers with -9 and compare.")
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=None, help="of the first directory; the next has the next one")
    options = parser.parse_args()
    first = randbelow(10**6) * 1000 if options.seed is None else options.seed
    kills = events = lost = doubled = wrong = 0
    began = time.monotonic()
    with ForkServer() as forks:
        forker, seed = ServerForker(forks, "tests.crash.server"), first
        while kills < options.kills:
            planned = min(KILLS_EACH, options.kills - kills)
            with tempfile.TemporaryDirectory(prefix="holdfast-crash-") as place:
                lives = RandomLives(Path(place) / "data", forker, seed)
                failed = _soak(lives, planned)
                if failed:
                    print(f"crash: seed {seed} failed: {failed}", file=sys.stderr)
            kills += planned
            events += lives.world.ledger.events
            for violation in lives.world.violations:
                print(f"crash: seed {seed}: {violation}", file=sys.stderr)
            kinds = [violation.kind for violation in lives.world.violations]
            lost += kinds.count("lost")
            doubled += kinds.count("doubled")
            wrong += kinds.count("wrong") + bool(failed)
            if kinds or failed:
                print(f"crash: again: python -m tests.crash --kills {planned} --seed {seed}", file=sys.stderr)
            pace = (time.monotonic() - began) / kills
            print(f"crash: {kills}/{options.kills} kills, {events} events, {pace:.2f} s a kill", file=sys.stderr)
            seed += 1
    more = f", {wrong} otherwise wrong" if wrong else ""
    print(f"crash: {kills} kills, seed {first}, {events} events received, {lost} lost, {doubled} doubled{more}")
    return 1 if lost or doubled or wrong else 0


def _soak(lives: RandomLives, kills: int) -> str | None:
    """What went wrong outside the ledger: a server that did not come up, stop or answer."""
    try:
        for _ in range(kills):
            lives.live_and_die()
        lives.finish()
    except Exception:  # noqa: BLE001 - one directory's failure is reported, and the soak goes on
        log = lives.world.directory.with_name("data.log")
        return f"{traceback.format_exc()}{log.read_text(errors='replace')[-4000:]}"
    return None


if __name__ == "__main__":
    sys.exit(main())
