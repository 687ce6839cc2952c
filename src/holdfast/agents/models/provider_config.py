"""Providers as plain values: configured ones, those whose key is in the environment, and servers on this machine."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Literal

from holdfast.agents.models.port import Ability
from holdfast.core.values import dataclass

Kind = Literal[
    "openai",
    "openrouter",
    "groq",
    "deepseek",
    "mistral",
    "xai",
    "together",
    "ollama",
    "lmstudio",
    "llamacpp",
    "vllm",
    "compatible",
    "anthropic",
    "google",
]
"""The wire format and its dialect. `compatible`: anything else that speaks OpenAI's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderConfig:
    """One provider. `name` begins the ids of its models."""

    name: str
    kind: Kind = "compatible"
    base_url: str | None = None
    """Without one, the kind's own."""
    api_key: str | None = field(default=None, repr=False)
    key_name: str = ""
    """Where the key is from or should be put, for people."""
    models: tuple[str, ...] = ()
    """Those to offer; without any, the provider is asked."""
    default: str | None = None
    context: int | None = None
    """Tokens, where the provider does not say."""
    abilities: tuple[Ability, ...] | None = None
    """What its models can do, where the provider does not say."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    found: bool = False
    """Found on this machine and configured by nobody: not worth a word when it is not there."""


@dataclass(frozen=True, slots=True)
class Preset:
    """What is known of a kind of provider."""

    title: str
    base_url: str
    keys: tuple[str, ...] = ()
    """Variables that may hold its key."""
    base_url_key: str | None = None
    prefer: tuple[str, ...] = ()
    """Names, or beginnings of names, of models to begin with; the first is taken when none could be listed."""
    abilities: frozenset[Ability] = frozenset({"tools"})
    port: int | None = None
    """Of a server on this machine."""


_HOSTED: frozenset[Ability] = frozenset({"tools", "images"})
_ALL: frozenset[Ability] = frozenset({"tools", "images", "documents", "reasoning"})

PRESETS: Mapping[Kind, Preset] = {
    "openai": Preset(
        "OpenAI",
        "https://api.openai.com/v1",
        ("OPENAI_API_KEY",),
        "OPENAI_BASE_URL",
        ("gpt-5.1", "gpt-5", "gpt-4.1", "gpt-4o"),
        _ALL,
    ),
    "anthropic": Preset(
        "Anthropic",
        "https://api.anthropic.com",
        ("ANTHROPIC_API_KEY",),
        "ANTHROPIC_BASE_URL",
        ("claude-sonnet-4-5", "claude-sonnet", "claude-opus", "claude-haiku"),
        _ALL,
    ),
    "google": Preset(
        "Google",
        "https://generativelanguage.googleapis.com",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        None,
        ("gemini-2.5-flash", "gemini-2.5-pro", "gemini"),
        _ALL,
    ),
    "openrouter": Preset(
        "OpenRouter", "https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",), None, ("openrouter/auto",), _HOSTED
    ),
    "mistral": Preset(
        "Mistral", "https://api.mistral.ai/v1", ("MISTRAL_API_KEY",), None, ("mistral-medium-latest", "mistral-large")
    ),
    "deepseek": Preset(
        "DeepSeek", "https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",), None, ("deepseek-chat", "deepseek")
    ),
    "groq": Preset(
        "Groq",
        "https://api.groq.com/openai/v1",
        ("GROQ_API_KEY",),
        None,
        ("openai/gpt-oss-120b", "llama-3.3-70b-versatile", "llama"),
    ),
    "xai": Preset("xAI", "https://api.x.ai/v1", ("XAI_API_KEY",), None, ("grok-4", "grok"), _HOSTED),
    "together": Preset("Together AI", "https://api.together.xyz/v1", ("TOGETHER_API_KEY",), None, ("meta-llama",)),
    "ollama": Preset("Ollama", "http://127.0.0.1:11434/v1", (), None, (), port=11434),
    "lmstudio": Preset("LM Studio", "http://127.0.0.1:1234/v1", (), None, (), port=1234),
    "llamacpp": Preset("llama.cpp", "http://127.0.0.1:8080/v1", (), None, (), port=8080),
    "vllm": Preset("vLLM", "http://127.0.0.1:8000/v1", (), None, (), port=8000),
    "compatible": Preset("", "", (), None, ()),
}


def from_environment(environment: Mapping[str, str]) -> tuple[ProviderConfig, ...]:
    """Providers whose key is set. A base URL alone is enough for OpenAI's: servers of one's own need no key."""
    return tuple(
        config
        for kind, preset in PRESETS.items()
        if preset.keys and (config := _configured(kind, preset, environment)) is not None
    )


def _configured(kind: Kind, preset: Preset, environment: Mapping[str, str]) -> ProviderConfig | None:
    variable = next((name for name in preset.keys if environment.get(name, "").strip()), None)
    base_url = environment.get(preset.base_url_key or "", "").strip() or None
    if variable is None and base_url is None:
        return None
    # Behind another address there may be anything; OpenAI's own habits are not expected of it.
    elsewhere = kind == "openai" and base_url is not None and "api.openai.com" not in base_url
    return ProviderConfig(
        name=kind,
        kind="compatible" if elsewhere else kind,
        base_url=base_url,
        api_key=environment[variable].strip() if variable else None,
        key_name=variable or preset.keys[0],
    )


def on_this_machine(ports: Mapping[Kind, int] | None = None) -> tuple[ProviderConfig, ...]:
    """Servers that may be listening here, at their usual ports or those given."""
    usual: dict[Kind, int] = {kind: preset.port for kind, preset in PRESETS.items() if preset.port is not None}
    chosen = usual if ports is None else ports
    return tuple(
        ProviderConfig(name=kind, kind=kind, base_url=f"http://127.0.0.1:{port}/v1", found=True)
        for kind, port in chosen.items()
    )


def merged(*groups: Iterable[ProviderConfig]) -> tuple[ProviderConfig, ...]:
    """All of them, by name; an earlier one hides later ones of its name or address."""
    result: dict[str, ProviderConfig] = {}
    addresses: set[str] = set()
    for config in (config for group in groups for config in group):
        address = base_url(config)
        if config.name in result or (config.found and address in addresses):
            continue
        result[config.name] = config
        addresses.add(address)
    return tuple(result.values())


def base_url(config: ProviderConfig) -> str:
    return (config.base_url or PRESETS[config.kind].base_url).rstrip("/")


def title(config: ProviderConfig) -> str:
    """The provider's name for people: its own where it is the only one of its kind."""
    return PRESETS[config.kind].title if config.name == config.kind else config.name
