"""How long requests to models may take, how large answers may be, and when a failed request is sent again: only while
nothing of the answer was given out, and only for failures that say `retry` (decided in `models.upstream_errors`).
Besides, `http_client` re-sends a request at once if a kept connection turns out to be closed."""

import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime

import anyio

from holdfast.core.events import StepRetrying
from holdfast.models.chat_completion_stream import MAX_ANSWER, MAX_EVENT
from holdfast.models.provider_config import ProviderConfig
from holdfast.models.upstream_errors import UpstreamError, describe, explain


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds."""

    connect: float = 10.0
    first_token: float = 300.0
    """From the request to the first delta: a model may think for minutes, and keep-alives do not show that it does."""
    idle: float = 120.0
    """Between bytes, once the answer has started. Time that the reader spends elsewhere does not count."""
    stalled: float = 600.0  # Between deltas, whether or not keep-alives arrive
    tail: float = 5.0  # After the finish reason, for usage and the end mark. The answer is complete without them.


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    timeouts: Timeouts = field(default_factory=Timeouts)
    attempts: int = 4  # In total, including the first
    first_delay: float = 0.5
    max_delay: float = 20.0
    max_requested_delay: float = 60.0  # If a provider asks for a longer wait, the request fails: people prefer to know
    max_event: int = MAX_EVENT
    max_answer: int = MAX_ANSWER
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    jitter: Callable[[], float] = random.random
    """In [0, 1): spreads requests that failed together. It never shortens the wait that a provider asked for."""

    def retry_delay(self, error: UpstreamError, attempt: int) -> float | None:
        """Seconds before attempt number `attempt + 1`, or None to give up."""
        if not error.retry or attempt >= self.attempts:
            return None
        backoff = min(self.first_delay * 2.0 ** (attempt - 1), self.max_delay)
        if error.after is None:
            return backoff * (0.5 + self.jitter() / 2)
        if error.after > self.max_requested_delay:
            return None
        return max(error.after, 0.0) + backoff * self.jitter() / 4

    async def wait_to_retry(
        self,
        error: UpstreamError,
        attempt: int | None,
        config: ProviderConfig,
        model: str,
        on_retry: Callable[[StepRetrying], object] | None = None,
    ) -> None:
        """Waits until attempt number `attempt + 1`. Raises ModelError if there is none. `attempt` is None once a delta
        was given out: then nothing is asked again."""
        delay = None if attempt is None else self.retry_delay(error, attempt)
        if delay is None or attempt is None:
            raise explain(error, config, model) from None  # errors of libraries may carry headers, and so the key
        if on_retry is not None:
            reason = describe(error, config, model)
            on_retry(StepRetrying(attempt + 1, self.attempts, round(delay * 1000), reason))
        await self.sleep(delay)


def parse_retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait, from `Retry-After` (seconds or a date) or OpenAI's `retry-after-ms`; None if absent or invalid.
    Header names are in lower case."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "")
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
