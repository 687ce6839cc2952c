"""The chat server of the tests with its clock set back to when a fixture was written, so that nothing in the fixture
is past its retention or its deadline: `python -m tests.compat.server <settings as JSON>`."""

import json
import sys
import time
from collections.abc import Sequence

from tests.chat import server


def main(arguments: Sequence[str]) -> int:
    settings = json.loads(arguments[0])
    behind = time.time() - settings.pop("starts_at")
    now = time.time
    time.time = lambda: now() - behind
    return server.main([json.dumps(settings)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
