"""Counting the values of JSON from outside."""

import json

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.nesting import JsonCounter
from holdfast.core.parts import Json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('a"\\\n{[,é')),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.sampled_from('b"\\ ')), inner),
    max_leaves=20,
)


def strings(value: Json) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(found for item in value.values() for found in strings(item))]
    if isinstance(value, list):
        return [found for item in value for found in strings(item)]
    return [value] if isinstance(value, str) else []


@given(VALUES, st.integers(1, 9), st.sampled_from([None, 2]))
def test_strings_and_what_is_outside_of_them_are_counted(value: Json, size: int, indent: int | None) -> None:
    """Wherever chunks begin and end, also within an escape; whitespace does not count."""
    data = json.dumps(value, indent=indent).encode()
    counter = JsonCounter()
    for at in range(0, len(data), size):
        counter.add(data[at : at + size])
    found = strings(value)
    compact = json.dumps(value, separators=(",", ":"))
    assert counter.strings == len(found)
    assert counter.structure == len(compact) - sum(len(json.dumps(text)) for text in found)


def test_a_lone_quotation_mark_hides_nothing_of_the_next_line() -> None:
    """A comment of an event stream may contain one."""
    counter = JsonCounter()
    counter.add(b': "')
    counter.add(b"\rdata:[[],[]]")
    assert counter.structure == len(b":data:[[],[]]")
