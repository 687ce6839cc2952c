"""A clock and ids under the control of a test."""


class FakeClock:
    """Stands still until it is advanced or set; may be set back, as a real clock may jump."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now

    def now(self) -> float:
        return self._now

    def set(self, now: float) -> None:
        self._now = now

    def advance(self, seconds: float) -> None:
        self._now += seconds


class CountingIds:
    """`run_000001`, `msg_000002`, …: one counter for all prefixes, so that ids sort by creation."""

    def __init__(self, last: int = 0) -> None:
        self._last = last

    def new(self, prefix: str) -> str:
        self._last += 1
        return f"{prefix}_{self._last:06d}"
