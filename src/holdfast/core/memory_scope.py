"""Decides whose memories a run is shown: those of all chats, those of its project, or both (`recalled_owners`). Where
new ones go: `engine.transactions.memory.handle_of`; when memory is off: `is_off` there; how many fit: `recall_tokens`
in `engine.settings`.

A provider keeps the memory of a project's own apart as it keeps two owners apart: it is told an owner that is made of
the owner and the project. In a session's ledger, the project is part of the provider's handle, so turns of one commit
always belong to the same memory."""

from collections.abc import Mapping, Sequence
from typing import Final

from holdfast.core import chat_settings
from holdfast.core.ids import OwnerId, ProjectId
from holdfast.core.parts import Json
from holdfast.core.project import ProjectMemory
from holdfast.core.run import Run

OWN_MEMORY: Final = frozenset[ProjectMemory]({"project", "project_and_shared"})
_PROJECT = "@"  # Between a provider and a project
_OF_OWNER = "/"  # Between an owner and a project


def memory_of(settings: Json) -> tuple[ProjectId, ProjectMemory] | None:
    """The project whose own memory a run uses, by the run's settings; None: the memory of all chats."""
    found = chat_settings.project_of(settings)
    if not isinstance(found, Mapping) or found.get("memory") not in OWN_MEMORY:
        return None
    return ProjectId(found["id"]), found["memory"]


def recalled_owners(run: Run) -> Sequence[OwnerId]:
    """Whose memories a run is shown, by what it recorded of its project."""
    own = memory_of(run.settings)
    if own is None:
        return (run.owner,)
    scope = owner_of(run.owner, own[0])
    return (scope,) if own[1] == "project" else (scope, run.owner)


def scoped(provider: str, pid: ProjectId | None) -> str:
    """The handle of a provider for a project's own memory, or (None) for the memory of all chats."""
    return provider if pid is None else f"{provider}{_PROJECT}{pid}"


def provider_of(handle: str) -> str:
    return handle.partition(_PROJECT)[0]


def project_of(handle: str) -> ProjectId | None:
    return ProjectId(handle.partition(_PROJECT)[2]) if _PROJECT in handle else None


def owner_of(owner: OwnerId, pid: ProjectId | None) -> OwnerId:
    """Whom a provider is told that the memories belong to."""
    return owner if pid is None else OwnerId(f"{owner}{_OF_OWNER}{pid}")


def belongs_to(found: OwnerId, owner: OwnerId) -> bool:
    """Whether memories of `found` are the owner's, those of projects included."""
    return found == owner or found.startswith(f"{owner}{_OF_OWNER}prj_")


def project_of_owner(found: OwnerId) -> ProjectId | None:
    """The project whose own memory this is; None: the memory of all chats."""
    return ProjectId(found.partition(_OF_OWNER)[2]) if f"{_OF_OWNER}prj_" in found else None
