"""Translates requests to pydantic-ai's types, and keeps the provider data of its answers to send back. Pure."""

from typing import Any, assert_never, cast

from pydantic_ai import messages as pai
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from holdfast.core.parts import Json, ReasoningPart, TextPart
from holdfast.models.pydantic_ai_models import SAME_NAME_SETTINGS, settings_of
from holdfast.models.tool_call_assembler import args_text
from holdfast.ports.model import AssistantMessage, Media, ModelRequest, ToolCall, ToolMessage, UserMessage

_MAX_TOKENS = 8192  # Anthropic requires a value
_RESPONSE_FIELDS = ("provider_name", "provider_url", "canonical_system", "model_name")
_PART_FIELDS = ("id", "signature", "provider_name", "provider_details")


def messages(request: ModelRequest) -> list[pai.ModelMessage]:
    """The user and tool messages between two answers form one request."""
    result: list[pai.ModelMessage] = []
    pending: list[pai.ModelRequestPart] = [pai.SystemPromptPart(request.system)] if request.system else []
    for message in request.messages:
        match message:
            case UserMessage(content):
                pending.append(pai.UserPromptPart([_item(item) for item in content]))
            case ToolMessage(call_id, name, text, is_error, images):
                outcome: Any = "failed" if is_error else "success"
                returned: Any = [text, *map(_item, images)] if images else text
                pending.append(pai.ToolReturnPart(name, returned, call_id, outcome=outcome))
            case AssistantMessage():
                response = _response(message)
                if response is not None:
                    if pending:
                        result.append(pai.ModelRequest(pending))
                        pending = []
                    result.append(response)
            case _:
                assert_never(message)
    if pending:
        result.append(pai.ModelRequest(pending))
    return result


def parameters(request: ModelRequest) -> ModelRequestParameters:
    tools = [
        ToolDefinition(
            name=t.name, description=t.description, parameters_json_schema=dict(t.parameters), strict=t.strict
        )
        for t in request.tools
    ]
    return ModelRequestParameters(function_tools=tools)


def settings(request: ModelRequest, system: str) -> ModelSettings:
    names = SAME_NAME_SETTINGS & settings_of(system)
    known: dict[str, Json] = {name: request.settings[name] for name in names if request.settings.get(name) is not None}
    if system == "anthropic":
        known.setdefault("max_tokens", _MAX_TOKENS)
    stop = request.settings.get("stop")
    if stop:
        known["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    choice = request.settings.get("tool_choice")
    if choice is not None and request.tools:
        known["tool_choice"] = [choice["function"]["name"]] if isinstance(choice, dict) else choice
    effort = request.settings.get("reasoning_effort")
    if effort is not None:
        known["thinking"] = False if effort == "none" else effort
    return cast(ModelSettings, known)


def provider_data(part: pai.ThinkingPart | pai.ToolCallPart, response: pai.ModelResponse) -> Json:
    """Data that the provider needs back with the part, as JSON; None if there is none."""
    own = {name: value for name in _PART_FIELDS if (value := getattr(part, name, None)) is not None}
    if isinstance(part, pai.ToolCallPart) and not part.provider_details and part.id is None:
        return None
    return {"part": own, "response": {name: getattr(response, name) for name in _RESPONSE_FIELDS}}


def _item(item: str | Media) -> pai.UserContent:
    return item if isinstance(item, str) else pai.BinaryContent(item.data, media_type=item.media_type)


def _response(answer: AssistantMessage) -> pai.ModelResponse | None:
    parts: list[pai.ModelResponsePart] = []
    about: dict[str, Any] = {}
    for part in answer.parts:
        own, response = _split_provider_data(getattr(part, "provider", None))
        about = about or response
        match part:
            case TextPart(text):
                if text:
                    parts.append(pai.TextPart(text))
            case ReasoningPart(text):
                if own:  # providers reject reasoning without their signature
                    parts.append(pai.ThinkingPart(text, **own))
            case ToolCall(call_id, name, args, _, invalid):
                sent = {"invalid": args_text(args)} if invalid is not None else args
                own.pop("signature", None)
                parts.append(pai.ToolCallPart(name or "unknown", sent, call_id, **own))
            case _:
                assert_never(part)
    if not any(isinstance(part, pai.TextPart | pai.ToolCallPart) for part in parts):
        return None
    return pai.ModelResponse(parts, **about)


def _split_provider_data(provider: Json) -> tuple[dict[str, Any], dict[str, Any]]:
    """The inverse of `provider_data`. Ignores data of other adapters."""
    if not isinstance(provider, dict) or not isinstance(provider.get("part"), dict):
        return {}, {}
    about = provider.get("response")
    own = {name: value for name, value in provider["part"].items() if name in _PART_FIELDS}
    response = {name: about[name] for name in _RESPONSE_FIELDS if name in about} if isinstance(about, dict) else {}
    return own, response
