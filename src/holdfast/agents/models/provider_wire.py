"""A request in pydantic-ai's values, and what has to be kept of its answers so that they can go back. Pure."""

import json
from typing import Any, assert_never

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from holdfast.agents.models import wire
from holdfast.agents.models.port import Ability, AssistantSaid, Media, Request, ToolCall, ToolSaid, UserSaid
from holdfast.agents.models.providers import PLAIN
from holdfast.core.parts import Json, Reasoning, Text

_MAX_TOKENS = 8192
"""Anthropic wants to be told."""
_RESPONSE = ("provider_name", "provider_url", "canonical_system", "model_name")
_PART = ("id", "signature", "provider_name", "provider_details")


def messages(request: Request, abilities: frozenset[Ability]) -> list[ModelMessage]:
    """What people and tools say between two answers is one request there."""
    result: list[ModelMessage] = []
    waiting: list[ModelRequestPart] = [SystemPromptPart(request.system)] if request.system else []
    for said in request.messages:
        match said:
            case UserSaid(content):
                waiting.append(UserPromptPart([_item(item, abilities) for item in content]))
            case ToolSaid(call_id, name, text, is_error):
                outcome: Any = "failed" if is_error else "success"
                waiting.append(ToolReturnPart(name, text, call_id, outcome=outcome))
            case AssistantSaid():
                response = _response(said)
                if response is not None:
                    if waiting:
                        result.append(ModelRequest(waiting))
                        waiting = []
                    result.append(response)
            case _:
                assert_never(said)
    if waiting:
        result.append(ModelRequest(waiting))
    return result


def parameters(request: Request) -> ModelRequestParameters:
    tools = [
        ToolDefinition(
            name=t.name, description=t.description, parameters_json_schema=dict(t.parameters), strict=t.strict
        )
        for t in request.tools
    ]
    return ModelRequestParameters(function_tools=tools)


def settings(request: Request, system: str) -> ModelSettings:
    known: dict[str, Json] = {name: request.settings[name] for name in PLAIN if request.settings.get(name) is not None}
    if system == "anthropic":
        known.setdefault("max_tokens", _MAX_TOKENS)
        known.pop("seed", None)
    stop = request.settings.get("stop")
    if stop:
        known["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    choice = request.settings.get("tool_choice")
    if choice is not None and request.tools:
        known["tool_choice"] = [choice["function"]["name"]] if isinstance(choice, dict) else choice
    effort = request.settings.get("reasoning_effort")
    if effort is not None:
        known["thinking"] = False if effort == "none" else effort
    chosen: Any = known
    result: ModelSettings = chosen
    return result


def signed(part: ThinkingPart) -> bool:
    return bool(part.signature or part.id or part.provider_details)


def kept(part: ThinkingPart | ToolCallPart, response: ModelResponse) -> Json:
    """What the provider wants back with the part, as JSON; None if nothing."""
    own = {name: value for name in _PART if (value := getattr(part, name, None)) is not None}
    if isinstance(part, ToolCallPart) and not part.provider_details and part.id is None:
        return None
    return {"part": own, "response": {name: getattr(response, name) for name in _RESPONSE}}


def as_text(args: Any) -> str:
    """Arguments as the model wrote them, or as the library parsed them."""
    if args is None:
        return ""
    return args if isinstance(args, str) else json.dumps(args, ensure_ascii=False)


def _item(item: str | Media, abilities: frozenset[Ability]) -> UserContent:
    if isinstance(item, str):
        return item
    if wire.is_text(item):
        return wire.as_text(item)
    image = item.media_type.startswith("image/") and "images" in abilities
    document = item.media_type == "application/pdf" and "documents" in abilities
    return BinaryContent(item.data, media_type=item.media_type) if image or document else wire.left_out(item)


def _response(said: AssistantSaid) -> ModelResponse | None:
    parts: list[ModelResponsePart] = []
    about: dict[str, Any] = {}
    for part in said.parts:
        own, response = _taken_apart(getattr(part, "provider", None))
        about = about or response
        match part:
            case Text(text):
                if text:
                    parts.append(TextPart(text))
            case Reasoning(text):
                if own:  # without a signature no provider takes it for its own
                    parts.append(ThinkingPart(text, **own))
            case ToolCall(call_id, name, args, _, invalid):
                sent = {"invalid": as_text(args)} if invalid is not None else args
                own.pop("signature", None)
                parts.append(ToolCallPart(name or "unknown", sent, call_id, **own))
            case _:
                assert_never(part)
    if not any(isinstance(part, TextPart | ToolCallPart) for part in parts):
        return None
    return ModelResponse(parts, **about)


def _taken_apart(provider: Json) -> tuple[dict[str, Any], dict[str, Any]]:
    """The inverse of `kept`; nothing of what another adapter kept."""
    if not isinstance(provider, dict) or not isinstance(provider.get("part"), dict):
        return {}, {}
    about = provider.get("response")
    own = {name: value for name, value in provider["part"].items() if name in _PART}
    response = {name: about[name] for name in _RESPONSE if name in about} if isinstance(about, dict) else {}
    return own, response
