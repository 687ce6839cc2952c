"""Families of models that are known to see images, for servers that do not report what their models can do.

`models.model_list_cache` decides with them what abilities a model has; `agents.chat.attachments` what it is sent."""

import re
from typing import Final

_FAMILIES: Final = (
    r"(chat)?gpt-4o(?!-(audio|mini-audio|search))|gpt-4\.[15]|gpt-4-turbo|gpt-[5-9]",
    r"o1(?!-mini|-preview)|o3(?!-mini)|o[4-9]",
    r"claude-(3|4|5|opus|sonnet|haiku)",
    r"gemini(?!-pro$|-1\.0-pro)|gemma-?(3(?!.*\b(270m|1b)\b)|[4-9])",
    r"grok-([4-9]|2-vision)|pixtral|mistral-(small-3\.[1-9]|medium-3)",
    r"llama-?(4|3\.2-(11|90)b)|(bak|share)?llava|moondream|molmo|idefics|smolvlm|internvl|minicpm-[vo]",
    r"qwen[\d.]*-?(vl|omni)|qvq|kimi-vl|deepseek-vl|glm-4(\.\d)?v|phi-[34](\.\d)?-(vision|multimodal)",
    r"[a-z\d.-]{1,80}[-.](vl|vision)\b",
)
_VISION: Final = re.compile(rf"(?<![a-z\d])({'|'.join(_FAMILIES)})", re.IGNORECASE)
_MAX_NAME: Final = 200


def is_vision_name(name: str) -> bool:
    """Whether a model's name, with or without a path before it, belongs to a family that sees images."""
    return _VISION.search(name.rpartition("/")[2][:_MAX_NAME]) is not None
