"""Which part of a request's body an error of pydantic is about. Pure. What the value must be: `core.validation_text`;
the shape of the response: `server.problem_details`, `server.openai.errors`."""

from collections.abc import Iterable, Mapping
from typing import Any


def path_in_body(error: Mapping[str, Any], steps: Iterable[str | int], body: Any) -> list[str | int]:
    """The steps that are in the body. Pydantic puts the names of types between them, such as `constrained-str`."""
    found: list[str | int] = []
    at: Any = body
    steps = list(steps)
    for step in steps:
        is_key = isinstance(at, dict) and step in at
        is_index = isinstance(at, list) and isinstance(step, int) and step < len(at)
        if is_key or is_index:
            found.append(step)
            at = at[step]
    return [*found, *steps[-1:]] if error["type"] == "missing" else found
