"""How full a model's context is, by a simple estimate: four bytes of UTF-8 are a token, which is near the truth for
English and code and a little high for most other scripts; an image counts a flat sum. It decides when to summarise, and
fills the meter until the provider reports usage; it is not for billing."""

import json
from collections.abc import Sequence
from typing import Final, assert_never

from holdfast.agents.models.port import AssistantSaid, Media, ModelInfo, Request, Said, ToolSaid, ToolSpec, UserSaid
from holdfast.agents.tools.port import as_text
from holdfast.core.parts import Reasoning, Text
from holdfast.core.values import dataclass, replace

_PER_MESSAGE: Final = 4
_IMAGE: Final = 1500
_SHORT: Final = 400
"""A tool result up to this many characters is not worth leaving out."""
_KEEP: Final = 2
"""The newest results stay whole: the model has not used them yet."""


@dataclass(frozen=True, slots=True)
class Meter:
    """How much of the context is used. `limit` is None where the model does not say."""

    used: int
    limit: int | None

    @property
    def fraction(self) -> float | None:
        return None if not self.limit else self.used / self.limit


def meter(request: Request, model: ModelInfo) -> Meter:
    return Meter(of_request(request), model.context)


def of_text(text: str) -> int:
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return (size + 3) // 4


def of_request(request: Request) -> int:
    return of_text(request.system or "") + of_messages(request.messages) + of_tools(request.tools)


def of_tools(tools: Sequence[ToolSpec]) -> int:
    return sum(of_text(tool.name + tool.description + json.dumps(dict(tool.parameters))) for tool in tools)


def of_messages(messages: Sequence[Said]) -> int:
    return sum(_PER_MESSAGE + _of_said(message) for message in messages)


def _of_said(message: Said) -> int:
    match message:
        case UserSaid(content):
            return sum(of_text(item) if isinstance(item, str) else _of_media(item) for item in content)
        case AssistantSaid(parts):
            return sum(
                of_text(part.text) if isinstance(part, Text | Reasoning) else of_text(part.name + as_text(part.args))
                for part in parts
            )
        case ToolSaid(text=text):
            return of_text(text)
        case _:
            assert_never(message)


def _of_media(media: Media) -> int:
    return _IMAGE if media.media_type.startswith("image/") else len(media.data) // 4


def fit(messages: Sequence[Said], limit: int) -> list[Said]:
    """The messages with long tool results left out, oldest first, as far as it takes to come below `limit` tokens. A
    note stands in their place, so that every call keeps its answer. It may still be too much: then the provider says
    so."""
    kept = list(messages)
    excess = of_messages(kept) - limit
    results = [at for at, message in enumerate(kept) if isinstance(message, ToolSaid)]
    for at in results[:-_KEEP]:
        if excess <= 0:
            break
        old = kept[at]
        assert isinstance(old, ToolSaid)
        if len(old.text) > _SHORT:
            note = f"[A result of {len(old.text)} characters was left out here to save room. Ask again if you need it.]"
            kept[at] = replace(old, text=note)
            excess -= of_text(old.text) - of_text(note)
    return kept
