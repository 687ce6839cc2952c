"""What a look at storage found."""

from holdfast.core.values import dataclass


@dataclass(frozen=True, slots=True)
class Seen:
    """Not `ok`: a person should look at it."""

    what: str
    ok: bool
    text: str
