"""What servers say about their models, in their several forms. Pure: JSON in, values out; what has the wrong shape is
left out."""

import re
from collections.abc import Iterator
from pathlib import PurePath

from holdfast.agents.models.port import Ability
from holdfast.core.parts import Json
from holdfast.core.values import dataclass

_NO_CHAT = re.compile(
    r"embed|whisper|tts|dall-e|moderation|transcribe|realtime|audio|image|sora|babbage|davinci|rerank|ocr|guard|veo|aqa",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Listed:
    """A model as its server lists it. `abilities` is None where the server says nothing about them."""

    name: str
    title: str
    context: int | None = None
    abilities: frozenset[Ability] | None = None


def from_openai(data: Json) -> list[Listed] | None:
    """`GET /v1/models`, with what OpenRouter, Groq, Mistral, vLLM, llama.cpp and LM Studio add to it. None: it is no
    such list."""
    items = data.get("data") if isinstance(data, dict) else None
    if not isinstance(items, list):
        return None
    return [_openai_model(item) for item in _objects(items) if _is_chat(item)]


def from_ollama(tags: Json) -> list[str] | None:
    """`GET /api/tags`: names alone."""
    items = tags.get("models") if isinstance(tags, dict) else None
    if not isinstance(items, list):
        return None
    return [item["name"] for item in _objects(items) if isinstance(item.get("name"), str)]


def from_ollama_show(name: str, data: Json) -> Listed | None:
    """`POST /api/show`: what one of them can do. None if it does not chat."""
    shown = data if isinstance(data, dict) else {}
    info = shown.get("model_info")
    fields = info.items() if isinstance(info, dict) else ()
    context = next((_number(value) for key, value in fields if key.endswith(".context_length")), None)
    context = _modelfile_context(shown.get("parameters")) or context
    can = shown.get("capabilities")
    if not isinstance(can, list):
        return Listed(name, name, context)
    if "completion" not in can:
        return None
    return Listed(
        name, name, context, _abilities(tools="tools" in can, images="vision" in can, reasoning="thinking" in can)
    )


def from_ollama_ps(data: Json) -> dict[str, int]:
    """`GET /api/ps`: the context that loaded models really have. It is often far below what the model could have, and
    Ollama cuts a longer conversation without a word."""
    items = data.get("models") if isinstance(data, dict) else None
    pairs = ((item.get("name"), _number(item.get("context_length"))) for item in _objects(items))
    return {name: size for name, size in pairs if isinstance(name, str) and size is not None}


def sees_images(props: Json) -> bool:
    """`GET /props` of llama.cpp."""
    modalities = props.get("modalities") if isinstance(props, dict) else None
    return isinstance(modalities, dict) and bool(modalities.get("vision"))


def from_anthropic(data: Json) -> list[Listed] | None:
    items = data.get("data") if isinstance(data, dict) else None
    if not isinstance(items, list):
        return None
    return [
        Listed(
            item["id"], str(item.get("display_name") or item["id"]), _number(item.get("max_input_tokens")) or 200_000
        )
        for item in _objects(items)
        if isinstance(item.get("id"), str)
    ]


def from_google(data: Json) -> list[Listed] | None:
    items = data.get("models") if isinstance(data, dict) else None
    if not isinstance(items, list):
        return None
    listed = []
    for item in _objects(items):
        name = item.get("name")
        methods = _items(item.get("supportedGenerationMethods"))
        if isinstance(name, str) and "generateContent" in methods and not _NO_CHAT.search(name):
            name = name.removeprefix("models/")
            listed.append(Listed(name, str(item.get("displayName") or name), _number(item.get("inputTokenLimit"))))
    return listed


def pick(names: list[str], prefer: tuple[str, ...]) -> str | None:
    """The model to begin with: the first preference that is there by name or, shortest first, by its beginning."""
    for wanted in prefer:
        if wanted in names:
            return wanted
        if begins := [name for name in names if name.startswith(wanted)]:
            return min(begins, key=len)
    return names[0] if names else None


# ---- one model of OpenAI's list ----


def _is_chat(item: dict[str, Json]) -> bool:
    name, kind, can = item.get("id"), item.get("type"), item.get("capabilities")
    if not isinstance(name, str) or not name:
        return False
    if isinstance(kind, str) and kind in ("embeddings", "embedding", "image", "moderation", "rerank", "audio"):
        return False
    if isinstance(can, dict) and can.get("completion_chat") is False:
        return False
    return _NO_CHAT.search(name) is None


def _openai_model(item: dict[str, Json]) -> Listed:
    name: str = item["id"]
    shown = item.get("name") or item.get("display_name") or (PurePath(name).stem if name.endswith(".gguf") else name)
    meta = item["meta"] if isinstance(item.get("meta"), dict) else {}
    fields = ("context_length", "context_window", "max_model_len", "loaded_context_length", "max_context_length")
    sizes = [_number(item.get(field)) for field in fields] + [
        _number(meta.get(key)) for key in ("n_ctx", "n_ctx_train")
    ]
    return Listed(name, str(shown), next((size for size in sizes if size), None), _openai_abilities(item))


def _openai_abilities(item: dict[str, Json]) -> frozenset[Ability] | None:
    architecture, parameters, can = item.get("architecture"), item.get("supported_parameters"), item.get("capabilities")
    if isinstance(architecture, dict) and isinstance(parameters, list):  # OpenRouter
        takes = _items(architecture.get("input_modalities"))
        return _abilities(
            tools="tools" in parameters,
            images="image" in takes,
            documents="file" in takes,
            reasoning="reasoning" in parameters,
        )
    if isinstance(can, dict):  # Mistral
        return _abilities(
            tools=bool(can.get("function_calling")),
            images=bool(can.get("vision")),
            reasoning=bool(can.get("reasoning")),
        )
    if item.get("type") in ("llm", "vlm"):  # LM Studio
        return _abilities(tools=isinstance(can, list) and "tool_use" in can, images=item["type"] == "vlm")
    return None


def _abilities(
    *, tools: bool = False, images: bool = False, documents: bool = False, reasoning: bool = False
) -> frozenset[Ability]:
    pairs: tuple[tuple[Ability, bool], ...] = (
        ("tools", tools),
        ("images", images),
        ("documents", documents),
        ("reasoning", reasoning),
    )
    return frozenset(ability for ability, there in pairs if there)


def _modelfile_context(parameters: Json) -> int | None:
    found = re.search(r"^num_ctx\s+(\d+)$", parameters, re.MULTILINE) if isinstance(parameters, str) else None
    return int(found[1]) if found else None


def _objects(value: Json) -> Iterator[dict[str, Json]]:
    return (item for item in _items(value) if isinstance(item, dict))


def _items(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _number(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
