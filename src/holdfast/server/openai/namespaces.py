"""Namespaces of the client's functions. Models have flat names, so a function is offered as `namespace__name`, and a
call of it is shown under both names again."""

from collections.abc import Mapping
from typing import Any

from holdfast.core.parts import Json

Namespaces = Mapping[str, tuple[str, str]]  # Namespace and name, by flat name


def flat_name(namespace: str | None, name: str) -> str:
    if not namespace:
        return name
    return f"{namespace}{name}" if namespace.endswith("__") else f"{namespace}__{name}"


def of_tools(tools: Json) -> Namespaces:
    """The names of the functions in namespaces, from the stored tools of a call."""
    found: dict[str, tuple[str, str]] = {}
    for tool in tools if isinstance(tools, list) else ():
        match tool:
            case {"type": "namespace", "name": str(namespace), "tools": list(inner)}:
                names = [each["name"] for each in inner if _is_named(each)]
                found |= {flat_name(namespace, name): (namespace, name) for name in names}
            case _:
                pass
    return found


def _is_named(tool: Any) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("name"), str)
