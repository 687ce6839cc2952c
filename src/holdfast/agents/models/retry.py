"""When to ask again, and how long to wait before it. Decides, and does not wait."""

from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

from holdfast.agents.models.failures import Trouble
from holdfast.core.values import dataclass


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    attempts: int = 4
    """In all, the first one included."""
    first_wait: float = 0.5
    longest_wait: float = 20.0
    longest_asked_wait: float = 60.0
    """A provider that asks for more than this is not waited for: a person had rather know."""

    def wait(self, trouble: Trouble, attempt: int, chance: float) -> float | None:
        """Seconds before attempt number `attempt + 1`, or None to give up. `chance` in [0, 1) spreads those that failed
        together; it only lengthens what the provider asked for."""
        if not trouble.retry or attempt >= self.attempts:
            return None
        backed_off = min(self.first_wait * 2.0 ** (attempt - 1), self.longest_wait)
        if trouble.after is None:
            return backed_off * (0.5 + chance / 2)
        if trouble.after > self.longest_asked_wait:
            return None
        return max(trouble.after, 0.0) + backed_off * chance / 4


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait, from `Retry-After` (seconds or a date) or OpenAI's `retry-after-ms`; None where there is none
    that can be read."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("Retry-After")
    if value is None:
        return None
    seconds = _number(value)
    if seconds is not None:
        return seconds
    try:
        date = parsedate_to_datetime(value)
        return max(0.0, (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < 1e9 else None
