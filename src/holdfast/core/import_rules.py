"""Decides what a file that is imported may choose: for a chat and its project, what a person sees in their settings.
Anybody may have written the file, so it chooses no program, no directory, no permissions and no instructions that are
not shown, and does not join the chats of another application. Sizes and types of attached files:
`engine.export_import.FileRules`; limits of the format: `engine.export_lines`."""

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import Final

from holdfast.core import chat_settings
from holdfast.core.export_format import ExportedProject, ExportedSession
from holdfast.core.parts import Json
from holdfast.core.session import Session

_DEFAULT_AGENT: Final = "chat"
_NAMED: Final = 10  # Settings that are named, each with so many characters
_NAME: Final = 40
_OURS: Final = "origin"  # Each import writes its own


def restrict_session(session: Session, agents: Container[str]) -> tuple[Session, Sequence[str]]:
    """The session with what a file may choose, and what was left out, in sentences for its reader. `agents` may be
    chosen: those that can do nothing without a person's permission."""
    kept, lost = _restrict_settings(session.settings, *chat_settings.SESSION_FIELDS, "memory")
    left_out: list[str] = []
    agent = session.agent
    if not _is_allowed(agent, agents):
        agent = _DEFAULT_AGENT
        left_out.append(f"its agent {session.agent[:_NAME]!r} was not kept; choose it in the chat")
    if lost:
        left_out.append(f"its settings {_names(lost)} were not kept")
    return replace(session, agent=agent, settings=kept), left_out


def restrict_project(
    name: str, project: ExportedProject, agents: Container[str]
) -> tuple[ExportedProject, Sequence[str]]:
    """The same for the project of a session."""
    kept, lost = _restrict_settings(project.settings, *chat_settings.SESSION_FIELDS)
    left_out: list[str] = []
    agent, label = project.agent, name[:_NAME]
    if agent is not None and not _is_allowed(agent, agents):
        left_out.append(f"the agent {agent[:_NAME]!r} of its project {label!r} was not kept; choose it in the project")
        agent = None
    if lost:
        left_out.append(f"the settings {_names(lost)} of its project {label!r} were not kept")
    return replace(project, agent=agent, settings=kept), left_out


def refuse_origin(section: ExportedSession) -> Sequence[str]:
    """A sentence for the reader, if only the file says which application the session comes from."""
    if section.origin is None or section.copied_from is not None:
        return ()
    return (f"it is no copy of a chat of {section.origin.app}, because a file cannot say so",)


def _is_allowed(agent: str, agents: Container[str]) -> bool:
    return agent == _DEFAULT_AGENT or agent in agents


def _restrict_settings(settings: Json, *names: str) -> tuple[dict[str, Json] | None, Sequence[str]]:
    """Those that may be chosen, and the names of the others."""
    found = settings if isinstance(settings, dict) else {}
    kept = chat_settings.read(found, *names)
    lost = sorted(name for name, value in found.items() if value is not None and name not in {*kept, _OURS})
    return kept or None, lost


def _names(lost: Sequence[str]) -> str:
    names = ", ".join(name[:_NAME] for name in lost[:_NAMED])
    return f"{names} and {len(lost) - _NAMED} more" if len(lost) > _NAMED else names
