"""What a file that is imported may choose for a chat: what a person sees in the settings of the chat. Anybody may have
written the file, so it chooses no program, no directory, no permissions and no instructions that are not shown."""

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import Final

from holdfast.core import chat_settings
from holdfast.core.session import Session

_DEFAULT_AGENT: Final = "chat"
_NAMED: Final = 10  # Settings that are named, each with so many characters
_NAME: Final = 40
_OURS: Final = "origin"  # Each import writes its own


def restrict(session: Session, agents: Container[str]) -> tuple[Session, Sequence[str]]:
    """The session with what a file may choose, and what was left out, in sentences for its reader. `agents` may be
    chosen: those that can do nothing without a person's permission."""
    found = session.settings if isinstance(session.settings, dict) else {}
    kept = chat_settings.read(found, *chat_settings.SESSION_FIELDS, "memory")
    lost = sorted(name for name, value in found.items() if value is not None and name not in {*kept, _OURS})
    left_out: list[str] = []
    agent = session.agent
    if agent != _DEFAULT_AGENT and agent not in agents:
        agent = _DEFAULT_AGENT
        left_out.append(f"its agent {session.agent[:_NAME]!r} was not kept; choose it in the chat")
    if lost:
        names = ", ".join(name[:_NAME] for name in lost[:_NAMED])
        more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
        left_out.append(f"its settings {names}{more} were not kept")
    return replace(session, agent=agent, settings=kept or None), left_out
