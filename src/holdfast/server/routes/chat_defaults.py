"""Defaults of chat settings, for chats that have no value of their own. Which value counts: `core.chat_settings`."""

from holdfast.core import chat_settings
from holdfast.core.parts import Json
from holdfast.server.context import ApiContext
from holdfast.server.routing import Router
from holdfast.server.schemas import chat_settings as s

router = Router("settings", "/api/chat-defaults")

_NAMES = tuple(s.ChatDefaultsResponse.model_fields)


@router.get("")
async def read_chat_defaults(api: ApiContext) -> s.ChatDefaultsResponse:
    """Read the chat settings that apply to chats without their own. The default model is in `/api/settings`."""
    return _defaults(await api.engine.preferences.settings())


@router.patch("")
async def change_chat_defaults(api: ApiContext, body: s.UpdateChatDefaultsRequest) -> s.ChatDefaultsResponse:
    """Change the defaults. They apply from the next turn on; memory, to turns that are sent from now on."""
    given = {name: getattr(body, name) for name in body.model_fields_set}

    def change(stored: Json) -> Json:
        kept = {**chat_settings.read(stored, *_NAMES), **given}
        return {name: value for name, value in kept.items() if value is not None} or None

    return _defaults(await api.engine.preferences.update(chat_settings.DEFAULTS, change))


def _defaults(preferences: Json) -> s.ChatDefaultsResponse:
    return s.ChatDefaultsResponse.model_validate(chat_settings.read(preferences.get(chat_settings.DEFAULTS), *_NAMES))
