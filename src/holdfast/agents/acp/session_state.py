"""What a program offers in its session besides answers: options to choose from, such as modes and models, and slash
commands. Read tolerantly: what is not understood is left out. What the user chose is in the session's settings
(`core.session`)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Self

_MAX_OPTIONS: Final = 20
_MAX_CHOICES: Final = 500
_MAX_COMMANDS: Final = 200
_MAX_NAME: Final = 200
_MAX_DESCRIPTION: Final = 1000

OptionValue = str | bool


@dataclass(frozen=True, slots=True)
class OptionChoice:
    id: str
    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class AgentOption:
    id: str
    name: str
    value: OptionValue  # A boolean is turned on or off; otherwise the id of a choice
    choices: tuple[OptionChoice, ...] = ()
    category: str = ""  # mode, model, thought_level … or empty
    method: Literal["mode", "model", "config"] = "config"  # How the program wants it to be set

    def accepts(self, value: OptionValue) -> bool:
        if isinstance(self.value, bool) or isinstance(value, bool):
            return isinstance(self.value, bool) and isinstance(value, bool)
        return any(choice.id == value for choice in self.choices)

    def request(self, value: OptionValue) -> tuple[str, dict[str, OptionValue]]:
        """The protocol's method for setting the option, and its parameters without the session's id."""
        if self.method == "mode":
            return "session/set_mode", {"modeId": value}
        if self.method == "model":
            return "session/set_model", {"modelId": value}
        kind: dict[str, OptionValue] = {"type": "boolean"} if isinstance(value, bool) else {}
        return "session/set_config_option", {"configId": self.id, "value": value, **kind}


@dataclass(frozen=True, slots=True)
class AgentCommand:
    name: str
    description: str = ""
    hint: str | None = None  # What to type after it; None: it takes nothing


@dataclass(frozen=True, slots=True)
class AgentSessionState:
    options: tuple[AgentOption, ...] = ()
    commands: tuple[AgentCommand, ...] = ()

    def opened(self, result: Mapping[str, Any]) -> Self:
        """The state after the program has opened its session and named its options. Options replace modes and models,
        which are an older part of the protocol."""
        if isinstance(result.get("configOptions"), list):
            return replace(self, options=_options(result["configOptions"]))
        found = (
            _listed("mode", "Mode", result.get("modes"), "availableModes", "id", "currentModeId"),
            _listed("model", "Model", result.get("models"), "availableModels", "modelId", "currentModelId"),
        )
        return replace(self, options=tuple(option for option in found if option is not None))

    def updated(self, update: Mapping[str, Any]) -> Self:
        """With an update of the session; the same state for an update of another kind."""
        match update.get("sessionUpdate"):
            case "available_commands_update":
                return replace(self, commands=_commands(update.get("availableCommands")))
            case "current_mode_update":
                return self.chosen("mode", _text(update.get("currentModeId")))
            case "config_option_update" if isinstance(update.get("configOptions"), list):
                return replace(self, options=_options(update["configOptions"]))
            case _:
                return self

    def chosen(self, option_id: str, value: OptionValue) -> Self:
        options = [replace(o, value=value) if o.id == option_id and o.accepts(value) else o for o in self.options]
        return replace(self, options=tuple(options))

    def option(self, option_id: str) -> AgentOption | None:
        return next((option for option in self.options if option.id == option_id), None)

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """From `dataclasses.asdict`. Raises TypeError or ValueError for anything else."""
        options = [
            AgentOption(**{**item, "choices": tuple(OptionChoice(**choice) for choice in item["choices"])})
            for item in data["options"]
        ]
        return cls(tuple(options), tuple(AgentCommand(**item) for item in data["commands"]))


@dataclass(slots=True)
class SessionOptions:
    """The state of one running session, and the choices that were made in it. The program may change an option itself:
    a choice is applied once, not again with every turn."""

    state: AgentSessionState = field(default_factory=AgentSessionState)
    applied: dict[str, OptionValue] = field(default_factory=dict)
    initial: Mapping[str, OptionValue] = field(default_factory=dict)
    """The values that the program began a new session with; empty if the session was loaded."""

    @classmethod
    def of_new_session(cls, state: AgentSessionState) -> Self:
        return cls(state, initial={option.id: option.value for option in state.options})

    def offered(self, known: AgentSessionState) -> AgentSessionState:
        """What the program offers in a new session. `known`: what it offered in an earlier one."""
        state = self.state
        for option_id, value in {**{option.id: option.value for option in known.options}, **self.initial}.items():
            state = state.chosen(option_id, value)
        return state

    def to_apply(self, chosen: Mapping[str, OptionValue]) -> list[tuple[AgentOption, OptionValue]]:
        """The chosen options that the program does not have set yet. An option that the program does not have belongs
        to another agent."""
        known = [(option, chosen[option.id]) for option in self.state.options if option.id in chosen]
        return [(option, value) for option, value in known if self.applied.get(option.id) != value]


def _listed(
    option_id: Literal["mode", "model"], name: str, state: Any, items: str, key: str, current: str
) -> AgentOption | None:
    if not isinstance(state, dict):
        return None
    choices = tuple(_choices(state.get(items), key))
    value = _text(state.get(current))
    return AgentOption(option_id, name, value, choices, option_id, option_id) if choices else None


def _options(items: Any) -> tuple[AgentOption, ...]:
    return tuple(found for item in _dicts(items)[:_MAX_OPTIONS] if (found := _option(item)) is not None)


def _option(item: Mapping[str, Any]) -> AgentOption | None:
    option_id, value = _text(item.get("id")), item.get("currentValue")
    name, category = _text(item.get("name")) or option_id, _text(item.get("category"))
    if not option_id:
        return None
    if item.get("type") == "boolean":
        return AgentOption(option_id, name, value is True, (), category)
    choices = tuple(_choices(_ungrouped(item.get("options")), "value"))
    return AgentOption(option_id, name, _text(value), choices, category) if choices else None


def _ungrouped(items: Any) -> list[Mapping[str, Any]]:
    """Choices may be in groups, each with a list of its own."""
    found: list[Mapping[str, Any]] = []
    for item in _dicts(items)[:_MAX_CHOICES]:
        found += _dicts(item["options"]) if isinstance(item.get("options"), list) else [item]
    return found


def _choices(items: Any, key: str) -> Iterable[OptionChoice]:
    for item in _dicts(items)[:_MAX_CHOICES]:
        choice_id = _text(item.get(key))
        if choice_id:
            description = _text(item.get("description"), _MAX_DESCRIPTION)
            yield OptionChoice(choice_id, _text(item.get("name")) or choice_id, description)


def _commands(items: Any) -> tuple[AgentCommand, ...]:
    found = []
    for item in _dicts(items)[:_MAX_COMMANDS]:
        name, wants = _text(item.get("name")).removeprefix("/"), item.get("input")
        hint = _text(wants.get("hint")) if isinstance(wants, dict) else None
        if name and not any(character.isspace() for character in name):
            found.append(AgentCommand(name, _text(item.get("description"), _MAX_DESCRIPTION), hint))
    return tuple(found)


def _dicts(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: Any, most: int = _MAX_NAME) -> str:
    return value[:most] if isinstance(value, str) else ""
