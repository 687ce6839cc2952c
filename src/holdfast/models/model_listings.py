"""Parsers for the model lists of the supported servers: names, context windows and abilities. Pure; entries of the
wrong shape are left out. How many models of a server there are at most: `MAX_MODELS`; how large its response may be:
`models.discovery`."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath
from typing import TypeGuard, get_args

from holdfast.core.parts import Json
from holdfast.ports.model import Ability

MAX_MODELS = 2_000  # Entries of a list that are read
_MAX_NAME = 300  # Characters; an entry with a longer name is left out
_NO_CHAT = re.compile(
    r"embed|whisper|tts|dall-e|moderation|transcribe|realtime|audio|image|sora|babbage|davinci|rerank|ocr|guard|veo|aqa"
    r"|\b(bge|e5|gte|mxbai|minilm|colbert|stella|paraphrase|voyage|sentence-transformers|jina-(clip|colbert))\b|minilm",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model as its server lists it. `abilities` is None if the server does not state them."""

    name: str
    title: str
    context: int | None = None
    abilities: frozenset[Ability] | None = None


def from_openai(data: Json) -> list[ListedModel]:
    """`GET /v1/models`, with the fields that OpenRouter, Groq, Mistral, vLLM, llama.cpp and LM Studio add. Raises
    ValueError, as the others do, if it is not such a list."""
    return [_openai_model(item) for item in _entries(data, "data") if _is_chat(item)]


def from_ollama(tags: Json) -> list[str]:
    """`GET /api/tags`: names only."""
    return [item["name"] for item in _entries(tags, "models") if _is_name(item.get("name"))]


def from_ollama_show(name: str, data: Json) -> ListedModel | None:
    """`POST /api/show`: the details of one model. None if it is not a chat model."""
    shown = data if isinstance(data, dict) else {}
    info = shown.get("model_info")
    fields = info.items() if isinstance(info, dict) else ()
    context = next((_number(value) for key, value in fields if key.endswith(".context_length")), None)
    context = _modelfile_context(shown.get("parameters")) or context
    can = shown.get("capabilities")
    if not isinstance(can, list):  # versions of Ollama before 0.6.4 do not say
        details = shown.get("details")
        is_bert = isinstance(details, dict) and "bert" in str(details.get("family"))
        return None if is_bert or _NO_CHAT.search(name) else ListedModel(name, name, context)
    if "completion" not in can:
        return None
    abilities = _abilities(tools="tools" in can, images="vision" in can, reasoning="thinking" in can)
    return ListedModel(name, name, context, abilities)


def from_ollama_ps(data: Json) -> dict[str, int]:
    """`GET /api/ps`: the actual context of loaded models. It is often far below the model's maximum, and Ollama
    truncates a longer conversation silently."""
    items = data.get("models") if isinstance(data, dict) else None
    pairs = ((item.get("name"), _number(item.get("context_length"))) for item in _objects(items))
    return {name: size for name, size in pairs if _is_name(name) and size is not None}


def sees_images(props: Json) -> bool:
    """`GET /props` of llama.cpp."""
    modalities = props.get("modalities") if isinstance(props, dict) else None
    return isinstance(modalities, dict) and bool(modalities.get("vision"))


def from_anthropic(data: Json) -> list[ListedModel]:
    return [
        ListedModel(
            item["id"], _title(item.get("display_name"), item["id"]), _number(item.get("max_input_tokens")) or 200_000
        )
        for item in _entries(data, "data")
        if _is_name(item.get("id"))
    ]


def from_google(data: Json) -> list[ListedModel]:
    listed = []
    for item in _entries(data, "models"):
        name = item.get("name")
        methods = _items(item.get("supportedGenerationMethods"))
        if _is_name(name) and "generateContent" in methods and not _NO_CHAT.search(name):
            name = name.removeprefix("models/")
            title = _title(item.get("displayName"), name)
            listed.append(ListedModel(name, title, _number(item.get("inputTokenLimit"))))
    return listed


def unique(models: Iterable[ListedModel]) -> tuple[ListedModel, ...]:
    """Without those that have the name of an earlier one."""
    found: dict[str, ListedModel] = {}
    for model in models:
        found.setdefault(model.name, model)
    return tuple(found.values())


def pick_default(names: list[str], prefer: tuple[str, ...]) -> str | None:
    """The default model: the first preference that is listed, by name or else the shortest by prefix."""
    for preferred in prefer:
        if preferred in names:
            return preferred
        if matches := [name for name in names if name.startswith(preferred)]:
            return min(matches, key=len)
    return names[0] if names else None


# ---- one model of OpenAI's list ----


def _is_chat(item: dict[str, Json]) -> bool:
    name, kind, can = item.get("id"), item.get("type"), item.get("capabilities")
    if not _is_name(name):
        return False
    if isinstance(kind, str) and kind in ("embeddings", "embedding", "image", "moderation", "rerank", "audio"):
        return False
    if isinstance(can, dict) and can.get("completion_chat") is False:
        return False
    architecture = item.get("architecture")
    writes = architecture.get("output_modalities") if isinstance(architecture, dict) else None
    if isinstance(writes, list) and "text" not in writes:
        return False
    return _NO_CHAT.search(name) is None


def _openai_model(item: dict[str, Json]) -> ListedModel:
    name: str = item["id"]
    shown = item.get("name") or item.get("display_name")
    title = _title(shown, PurePath(name).stem if name.endswith(".gguf") else name)
    meta = item["meta"] if isinstance(item.get("meta"), dict) else {}
    fields = ("context_length", "context_window", "max_model_len", "loaded_context_length", "max_context_length")
    values = [*(item.get(field) for field in fields), meta.get("n_ctx"), meta.get("n_ctx_train")]
    sizes = map(_number, values)
    return ListedModel(name, title, next((size for size in sizes if size), None), _openai_abilities(item))


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


def _abilities(**has: bool) -> frozenset[Ability]:
    return frozenset(ability for ability in get_args(Ability) if has.get(ability))


def _modelfile_context(parameters: Json) -> int | None:
    found = re.search(r"^num_ctx\s+(\d{1,12})$", parameters, re.MULTILINE) if isinstance(parameters, str) else None
    return int(found[1]) if found else None


def _entries(data: Json, key: str) -> Iterator[dict[str, Json]]:
    items = data.get(key) if isinstance(data, dict) else None
    if not isinstance(items, list):
        raise ValueError("not a list of models")
    return _objects(items)


def _objects(value: Json) -> Iterator[dict[str, Json]]:
    """The objects among the first entries of a list."""
    return (item for item in islice(_items(value), MAX_MODELS) if isinstance(item, dict))


def _is_name(value: Json) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= _MAX_NAME


def _title(value: Json, name: str) -> str:
    return value[:_MAX_NAME] if isinstance(value, str) and value else name


def _items(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _number(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
