"""The prompt library: list, create, change, delete, fill, export, import. What it does: `engine.saved_prompts`."""

from typing import Annotated, Any, Final

from pydantic import Field

from holdfast.engine.transactions.saved_prompts import OnConflict
from holdfast.server import parameters as p
from holdfast.server.context import ApiContext
from holdfast.server.routing import Router
from holdfast.server.schemas import prompts as s

router = Router("prompts", "/api/prompts")

PromptPath = Annotated[str, Field(max_length=200, description="The id of a prompt, or its name.")]
_FORMAT: Final = "holdfast-prompts"


@router.get("")
async def list_prompts(api: ApiContext, limit: p.Limit = 50, cursor: p.Cursor = None) -> s.PromptListResponse:
    """List saved prompts by name."""
    (after,) = p.read_cursor(cursor, tuple[str]) or ("",)
    found = await api.engine.saved_prompts.list(limit=limit + 1, after=after)
    return s.PromptListResponse(
        items=[s.PromptResponse.from_prompt(prompt) for prompt in found[:limit]],
        next=p.write_cursor(found[limit - 1].name) if len(found) > limit else None,
    )


@router.post("", status=201)
async def create_prompt(api: ApiContext, body: s.CreatePromptRequest) -> s.PromptResponse:
    """Save a prompt. In the message box, `/` and its name insert it, after asking for the values of its variables."""
    prompt = await api.engine.saved_prompts.create(body.name, body.text, body.description)
    return s.PromptResponse.from_prompt(prompt)


@router.get("/export")
async def export_prompts(api: ApiContext) -> s.PromptExportResponse:
    """Export all prompts, for another server or as a backup."""
    prompts = [
        s.ExportedPrompt.model_construct(name=prompt.name, text=prompt.text, description=prompt.description)
        for prompt in await api.engine.saved_prompts.list()
    ]
    return s.PromptExportResponse(format=_FORMAT, version=1, prompts=prompts)


@router.post("/import")
async def import_prompts(
    api: ApiContext,
    body: s.PromptExport,
    on_conflict: Annotated[
        OnConflict, Field(description="What to do with a prompt whose name another one has here.")
    ] = "skip",
) -> s.ImportedPromptsResponse:
    """Import exported prompts, all or none of them."""
    found = [(prompt.name, prompt.text, prompt.description) for prompt in body.prompts]
    return s.ImportedPromptsResponse.model_validate(await api.engine.saved_prompts.add_imported(found, on_conflict))


@router.get("/{pid}")
async def read_prompt(api: ApiContext, pid: PromptPath) -> s.PromptResponse:
    return s.PromptResponse.from_prompt(await api.engine.saved_prompts.get(pid))


@router.patch("/{pid}")
async def change_prompt(
    api: ApiContext, pid: PromptPath, body: s.UpdatePromptRequest, if_match: p.IfMatch = None
) -> s.PromptResponse:
    """Change the given fields of a prompt."""
    fields: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
    version = p.expected_version(if_match)
    return s.PromptResponse.from_prompt(await api.engine.saved_prompts.update(pid, fields, if_version=version))


@router.delete("/{pid}", status=204)
async def delete_prompt(api: ApiContext, pid: PromptPath) -> None:
    """Delete a prompt. Messages that were written with it stay as they are."""
    await api.engine.saved_prompts.delete(pid)


@router.post("/{pid}/fill")
async def fill_prompt(api: ApiContext, pid: PromptPath, body: s.FillPromptRequest) -> s.FilledPromptResponse:
    """The prompt as the text of a message, with values for its variables."""
    return s.FilledPromptResponse(text=await api.engine.saved_prompts.fill(pid, body.values))
