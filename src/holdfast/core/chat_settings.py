"""Settings of a chat (temperature, tools, system prompt …): their ranges, and which of the owner's defaults, the
project, the persona, the chat and the run wins. Pure; all agents ask here.

A later layer wins; a value of the first four that is missing, null or out of range is inherited. Those of the project
and the persona are the ones that the run recorded when it was accepted (`core.project`, `core.personas`). A run's own
values were checked by the API that accepted it (`server.schemas.base`, `server.openai.schemas`). Which of them a model
is sent: `models.dialects`; what is recalled: `core.memory_scope`.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final, Literal, TypeGuard, get_args

from holdfast.core.memory_ledger import OFF
from holdfast.core.parts import Json
from holdfast.core.run import Run
from holdfast.core.session import Session
from holdfast.core.session_limits import MAX_TEXT

DEFAULTS: Final = "chat_defaults"  # The owner's setting that has them
PROJECT: Final = "project"  # The setting of a run that has what it was given of its project
PERSONA: Final = "persona"
"""The setting of a session that names its persona, and of a run that has what it was given of it."""
ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
ModelDefault = Literal["model_default"]
MODEL_DEFAULT: Final[ModelDefault] = "model_default"
"""The value of a parameter that is not sent, though the owner has a default for it: the model's own counts."""
MAX_TEMPERATURE: Final = 2.0
MAX_TOKENS: Final = 1_000_000

PARAMETERS: Final = ("temperature", "top_p", "max_tokens", "reasoning_effort")
"""Those that are passed to the model and have a range."""
MODEL_SETTINGS: Final = (*PARAMETERS, "seed", "stop")
"""What the chat agent passes to the model; the direct agent passes all that `models.dialects` knows."""
SESSION_FIELDS: Final = (*PARAMETERS, "use_tools")
"""Those that sessions have in their settings, besides `memory`."""


def is_valid(name: str, value: Json) -> bool:
    """Whether a value can be used. The API refuses others; an import or an old directory may have anything."""
    if value == MODEL_DEFAULT and name in PARAMETERS:
        return True
    match name:
        case "temperature":
            return _is_number(value) and 0 <= value <= MAX_TEMPERATURE
        case "top_p":
            return _is_number(value) and 0 < value <= 1
        case "max_tokens":
            return _is_number(value) and isinstance(value, int) and 1 <= value <= MAX_TOKENS
        case "reasoning_effort":
            return isinstance(value, str) and value in get_args(ReasoningEffort)
        case "use_tools":
            return isinstance(value, bool)
        case "system":
            return isinstance(value, str) and len(value) <= MAX_TEXT
        case "memory":
            return bool(value == OFF)
        case _:
            return False


def _is_number(value: Json) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def read(layer: Json, *names: str) -> dict[str, Json]:
    """The valid values of a layer, by name."""
    if not isinstance(layer, dict):
        return {}
    return {name: layer[name] for name in names if is_valid(name, layer.get(name))}


def defaults(session: Session, preferences: Mapping[str, Json]) -> dict[str, Json]:
    """The owner's defaults for a chat. A client of an API gets what it asked for, so they do not apply to it."""
    if session.is_from_api:
        return {}
    return read(preferences.get(DEFAULTS), *SESSION_FIELDS, "system", "memory")


def with_settings(fields: Mapping[str, Any], settings: Json, names: Collection[str]) -> dict[str, Any]:
    """Moves those of the fields of a session or project that have these names into its settings; None removes one."""
    given = {name: value for name, value in fields.items() if name in names}
    if not given:
        return dict(fields)
    rest = {name: value for name, value in fields.items() if name not in given}
    kept = {name: value for name, value in (settings or {}).items() if name not in given}
    named = {name: value for name, value in given.items() if value is not None}
    return {**rest, "settings": {**kept, **named} or None}


def project_of(settings: Json) -> Json:
    """What a run recorded of its project; None if it had none."""
    return settings.get(PROJECT) if isinstance(settings, dict) else None


def persona_of(settings: Json) -> Json:
    """What a run recorded of its persona; None if it had none."""
    return settings.get(PERSONA) if isinstance(settings, dict) else None


def of_session(session: Session, preferences: Mapping[str, Json], recorded: Json = None) -> dict[str, Json]:
    """What counts for turns of this session, with the project and the persona in `recorded` as in the settings of a
    run. An empty system prompt replaces the inherited one by none."""
    own = read(session.settings, *SESSION_FIELDS)
    system: dict[str, Json] = {} if session.system is None else {"system": session.system}
    project = read(project_of(recorded), *SESSION_FIELDS, "system")
    persona = read(persona_of(recorded), "use_tools", "system")
    inherited = {**defaults(session, preferences), **project, **persona}
    return _sent({**inherited, **own, **system})


def of_run(session: Session, run: Run, preferences: Mapping[str, Json]) -> dict[str, Json]:
    """What counts for this run, whose `instructions` replace the chat's system prompt. Other names that the session or
    the run has, such as `seed` or `tools`, are passed on unchecked to the agent."""
    unknown = _without(session.settings, *SESSION_FIELDS, PROJECT, PERSONA, "system", "memory")
    own = _without(run.settings, PROJECT, PERSONA, "system", "memory")
    instructions = own.get("instructions", unknown.get("instructions"))
    system: dict[str, Json] = {"system": instructions} if isinstance(instructions, str) else {}
    inherited = of_session(session, preferences, run.settings)
    return _sent({**unknown, **inherited, **own, **system})


def _sent(merged: dict[str, Json]) -> dict[str, Json]:
    """Without the parameters whose value is the model's own."""
    return {name: value for name, value in merged.items() if name not in PARAMETERS or value != MODEL_DEFAULT}


def _without(layer: Json, *names: str) -> dict[str, Json]:
    """The values of a layer, without these names and without nulls, which count as missing."""
    if not isinstance(layer, dict):
        return {}
    return {name: value for name, value in layer.items() if value is not None and name not in names}
