"""Where a model is asked for, and how. Values; the key is shown nowhere."""

from collections.abc import Mapping
from dataclasses import field

from yarl import URL

from holdfast.agents.models.chatstream import MAX_ANSWER, MAX_EVENT
from holdfast.agents.models.dialects import GENERIC, Dialect
from holdfast.agents.models.failures import Who
from holdfast.agents.models.retry import RetryPolicy
from holdfast.core.values import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds."""

    connect: float = 10.0
    first_token: float = 300.0
    """From the request to the first delta: a model may think for minutes, and keep-alives say nothing about it."""
    idle: float = 120.0
    """Between bytes, once the answer has begun. Time that the reader takes for itself does not count."""
    stalled: float = 600.0
    """Between deltas, keep-alives or not."""
    tail: float = 5.0
    """After the finish reason, for usage and the end mark. The answer is complete without them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a model is asked for, and how."""

    base_url: str
    """Up to and with `/v1`."""
    model: str
    """Its name there."""
    provider: str
    """For people."""
    api_key: str | None = field(default=None, repr=False)
    key_name: str = "the provider's API key"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    dialect: Dialect = GENERIC
    patience: Patience = field(default_factory=Patience)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    max_event: int = MAX_EVENT
    max_answer: int = MAX_ANSWER

    @property
    def url(self) -> URL:
        return URL(self.base_url.rstrip("/") + "/chat/completions")

    def all_headers(self) -> dict[str, str]:
        # A compressed stream arrives in larger lumps than it was sent in.
        headers = {
            "Accept": "text/event-stream",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": "holdfast",
        }
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        return {**headers, **self.headers}

    def who(self) -> Who:
        return Who(self.provider, self.model, place(self.base_url), self.key_name, self.api_key)


def place(base_url: str) -> str:
    """Host and port: what a person needs to know of an address, without what it may have of passwords."""
    try:
        url = URL(base_url)
        return f"{url.host}:{url.port}" if url.explicit_port else url.host or base_url
    except ValueError:
        return "an address that is not valid"
