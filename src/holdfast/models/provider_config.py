"""Provider configuration: the known kinds of provider, which key is used, and providers whose key is in the
environment. A key that was typed into the settings goes before one of the file, and that before the environment
(`choose_key`)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from yarl import URL

from holdfast.models.dialects import DIALECTS, GENERIC, ChatDialect
from holdfast.ports.model import Ability, KeySource, ProviderKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderConfig:
    """One provider. The ids of its models start with `name`."""

    name: str
    kind: ProviderKind = "compatible"
    base_url: str | None = None  # None: the default of its kind
    api_key: str | None = field(default=None, repr=False)
    key_name: str = ""  # Where the key comes from or belongs, shown to people
    key_source: KeySource | None = None  # None: there is no key
    models: tuple[str, ...] = ()  # The models to offer; if empty, the provider is asked
    default: str | None = None
    context: int | None = None  # Tokens, used if the provider does not state them
    abilities: tuple[Ability, ...] | None = None  # What its models can do, used if the provider does not state it
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    added: bool = False  # Added on a page, not configured in a file
    discovered: bool = False  # Looked for on this machine without being configured: not listed while it does not answer


def choose_key(typed: str | None, written: str | None, found: str | None) -> tuple[KeySource | None, str | None]:
    """Which key is used, and where it is from: typed into the settings, else written in the configuration file, else
    found in the environment."""
    sources: Sequence[tuple[KeySource, str | None]]
    sources = [("settings", typed), ("file", written), ("environment", found)]
    return next(((source, key) for source, key in sources if key), (None, None))


@dataclass(frozen=True, slots=True)
class Preset:
    """Defaults of a kind of provider."""

    title: str
    base_url: str
    keys: tuple[str, ...] = ()  # Environment variables that may hold its key
    base_url_keys: tuple[str, ...] = ()  # Environment variables that may name its address; the first that is set counts
    prefer: tuple[str, ...] = ()
    """Default models by name or prefix, best first; the first is used if the models cannot be listed."""
    abilities: frozenset[Ability] = frozenset({"tools"})


_HOSTED: frozenset[Ability] = frozenset({"tools", "images"})
_ALL: frozenset[Ability] = frozenset({"tools", "images", "documents", "reasoning"})

PRESETS: Mapping[ProviderKind, Preset] = {
    "openai": Preset(
        "OpenAI",
        "https://api.openai.com/v1",
        ("OPENAI_API_KEY",),
        ("OPENAI_BASE_URL", "OPENAI_API_BASE_URL"),  # OpenAI's own, and Open WebUI's
        ("gpt-5.1", "gpt-5", "gpt-4.1", "gpt-4o"),
        _ALL,
    ),
    "anthropic": Preset(
        "Anthropic",
        "https://api.anthropic.com",
        ("ANTHROPIC_API_KEY",),
        ("ANTHROPIC_BASE_URL",),
        ("claude-sonnet-4-5", "claude-sonnet", "claude-opus", "claude-haiku"),
        _ALL,
    ),
    "google": Preset(
        "Google",
        "https://generativelanguage.googleapis.com",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        (),
        ("gemini-2.5-flash", "gemini-2.5-pro", "gemini"),
        _ALL,
    ),
    "openrouter": Preset(
        "OpenRouter", "https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",), (), ("openrouter/auto",), _HOSTED
    ),
    "mistral": Preset(
        "Mistral", "https://api.mistral.ai/v1", ("MISTRAL_API_KEY",), (), ("mistral-medium-latest", "mistral-large")
    ),
    "deepseek": Preset(
        "DeepSeek", "https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",), (), ("deepseek-chat", "deepseek")
    ),
    "groq": Preset(
        "Groq",
        "https://api.groq.com/openai/v1",
        ("GROQ_API_KEY",),
        (),
        ("openai/gpt-oss-120b", "llama-3.3-70b-versatile", "llama"),
    ),
    "xai": Preset("xAI", "https://api.x.ai/v1", ("XAI_API_KEY",), (), ("grok-4", "grok"), _HOSTED),
    "together": Preset("Together AI", "https://api.together.xyz/v1", ("TOGETHER_API_KEY",), (), ("meta-llama",)),
    "ollama": Preset("Ollama", "http://127.0.0.1:11434/v1"),
    "lmstudio": Preset("LM Studio", "http://127.0.0.1:1234/v1"),
    "llamacpp": Preset("llama.cpp", "http://127.0.0.1:8080/v1"),
    "vllm": Preset("vLLM", "http://127.0.0.1:8000/v1"),
    "compatible": Preset("", ""),
}


def from_environment(environment: Mapping[str, str]) -> tuple[ProviderConfig, ...]:
    """Providers whose key is set. For OpenAI a base URL is enough: self-hosted servers need no key."""
    found = (_from_keys(kind, preset, environment) for kind, preset in PRESETS.items() if preset.keys)
    return tuple(config for config in found if config is not None)


def _from_keys(kind: ProviderKind, preset: Preset, environment: Mapping[str, str]) -> ProviderConfig | None:
    variable = next((name for name in preset.keys if environment.get(name, "").strip()), None)
    base_url = next((found for name in preset.base_url_keys if (found := environment.get(name, "").strip())), None)
    if variable is None and base_url is None:
        return None
    # Another address may be any server, so OpenAI's own dialect is not assumed.
    other_server = kind == "openai" and base_url is not None and "api.openai.com" not in base_url
    return ProviderConfig(
        name=kind,
        kind="compatible" if other_server else kind,
        base_url=base_url,
        api_key=environment[variable].strip() if variable else None,
        key_name=variable or preset.keys[0],
        key_source="environment" if variable else None,
    )


STORED_KEY: Final = "the key in Settings → Models"
ENTERED_KEY: Final = "the key"
"""What a key is called that is being checked before it is stored."""


def with_typed_key(config: ProviderConfig, key: str, key_name: str = STORED_KEY) -> ProviderConfig:
    """The provider with a key that a person entered, at the same address: a key must not be sent to another host than
    the one in use."""
    return replace(config, api_key=key, key_name=key_name, key_source="settings", discovered=False)


def merge_providers(*groups: Iterable[ProviderConfig]) -> tuple[ProviderConfig, ...]:
    """All providers by name. The first of a name wins, and a discovered server at a known address is left out."""
    result: dict[str, ProviderConfig] = {}
    addresses: set[str] = set()
    for config in (config for group in groups for config in group):
        address = base_url(config)
        if config.name in result or (config.discovered and address in addresses):
            continue
        result[config.name] = config
        addresses.add(address)
    return tuple(result.values())


def base_url(config: ProviderConfig) -> str:
    return (config.base_url or PRESETS[config.kind].base_url).rstrip("/")


def title(config: ProviderConfig) -> str:
    """The provider's name as shown to people: its address if the name was made from that."""
    address = host_and_port(base_url(config))
    known = next((preset.title for kind, preset in PRESETS.items() if kind == config.name), "")
    return known or (address if config.name == name_from_address(address) else config.name)


def name_from_address(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.removeprefix("www.")).strip("-")[:60]


def host_and_port(address: str) -> str:
    """The part of an address that may be shown: it leaves out a password."""
    try:
        url = URL(address)
        return f"{url.host}:{url.port}" if url.explicit_port else url.host or address
    except ValueError:
        return "an invalid address"


def dialect(config: ProviderConfig) -> ChatDialect:
    return DIALECTS.get(config.kind, GENERIC)


def request_headers(config: ProviderConfig, own: Mapping[str, str]) -> dict[str, str]:
    """The request's own headers, the key as this kind of provider takes it, and the configured headers."""
    headers = {"User-Agent": "holdfast", **own}
    if config.api_key and config.kind == "anthropic":
        headers |= {"x-api-key": config.api_key, "anthropic-version": "2023-06-01"}
    elif config.api_key and config.kind == "google":
        headers["x-goog-api-key"] = config.api_key
    elif config.api_key:
        headers["Authorization"] = f"Bearer {config.api_key}"
    return {**headers, **config.headers}
