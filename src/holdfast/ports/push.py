"""The push port: how a message reaches a browser that is not open. Its adapter: `holdfast.push`; what is sent and when:
`engine.push_sender`."""

from dataclasses import dataclass
from typing import Literal, Protocol

from holdfast.ports.store import PushSubscription

Outcome = Literal["sent", "gone", "retry", "refused"]
"""`sent`: the push service has accepted it and delivers it when it can. `gone`: the subscription has ended for good.
`refused`: repeating it would not help."""


@dataclass(frozen=True, slots=True)
class PushResult:
    outcome: Outcome
    reason: str = ""  # For people, unless it was sent
    retry_after: float | None = None  # Seconds for which the push service asks not to repeat it


class PushService(Protocol):
    async def public_key(self) -> str:
        """The key that browsers subscribe with, as base64url. It is created when it is first asked for, and is the same
        on all nodes."""

    def check(self, endpoint: str, p256dh: str, auth: str) -> None:
        """Raises InvalidInputError if nothing could be sent to such a subscription."""

    def accepts_credential(self, credential: str) -> bool:
        """Whether the login or token is still valid."""

    async def send(self, subscription: PushSubscription, payload: bytes, *, tag: str, ttl: float) -> PushResult:
        """Send a message once, encrypted. Of several with one `tag` that wait at the push service, the last remains.
        `ttl`: seconds for which it waits there. Raises nothing but cancellation."""
