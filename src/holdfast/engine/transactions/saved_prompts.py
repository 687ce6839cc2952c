"""Saved prompts as rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from holdfast.core.errors import NotAllowedError, NotFoundError, QuotaExceededError, VersionMismatchError
from holdfast.core.ids import OwnerId, PromptId
from holdfast.core.saved_prompts import MAX_PROMPTS, SavedPrompt
from holdfast.ports.store import Tx

OnConflict = Literal["skip", "replace"]


@dataclass(frozen=True, slots=True)
class ImportedPrompts:
    """Names of the prompts of an import, by what became of them. What was there already is in none of the lists."""

    added: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def get(tx: Tx, pid: str, owner: OwnerId, if_version: int | None = None) -> SavedPrompt:
    """The prompt with this id or name."""
    prompt = tx.prompt(PromptId(pid))
    if prompt is None or prompt.owner != owner:
        prompt = tx.prompt_named(owner, pid)
    if prompt is None:
        raise NotFoundError("prompt", pid)
    if if_version is not None and prompt.version != if_version:
        raise VersionMismatchError(if_version, prompt.version)
    return prompt


def create(tx: Tx, prompt: SavedPrompt) -> SavedPrompt:
    _check_free(tx, prompt)
    if tx.count_prompts(prompt.owner) >= MAX_PROMPTS:
        raise QuotaExceededError("prompts", MAX_PROMPTS, "Delete some first.")
    prompt = replace(prompt, created_at=tx.now, updated_at=tx.now)
    tx.put_prompt(prompt)
    return prompt


def amend(tx: Tx, pid: str, owner: OwnerId, if_version: int | None, fields: Mapping[str, Any]) -> SavedPrompt:
    prompt = replace(get(tx, pid, owner, if_version), **fields)
    _check_free(tx, prompt)
    prompt = replace(prompt, version=prompt.version + 1, updated_at=tx.now)
    tx.put_prompt(prompt)
    return prompt


def delete(tx: Tx, pid: str, owner: OwnerId) -> None:
    tx.drop_prompt(get(tx, pid, owner).id)


def add_imported(tx: Tx, prompts: Sequence[SavedPrompt], on_conflict: OnConflict) -> ImportedPrompts:
    """Store prompts of another library, all or none."""
    result = ImportedPrompts()
    for prompt in prompts:
        known = tx.prompt_named(prompt.owner, prompt.name)
        if known is None:
            create(tx, prompt)
            result.added.append(prompt.name)
        elif (known.text, known.description) != (prompt.text, prompt.description):
            if on_conflict == "replace":
                amend(tx, known.id, known.owner, None, {"text": prompt.text, "description": prompt.description})
            (result.replaced if on_conflict == "replace" else result.skipped).append(prompt.name)
    return result


def _check_free(tx: Tx, prompt: SavedPrompt) -> None:
    other = tx.prompt_named(prompt.owner, prompt.name)
    if other is not None and other.id != prompt.id:
        raise NotAllowedError("use the name", "another prompt has it; choose another one")
