"""Counting the values of JSON from outside."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import json_limits
from holdfast.core.json_limits import LARGE, JsonCounter, has_too_many_values
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


def values(value: Json) -> int:
    """An empty list or object counts as two, the outermost value as none."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else max(len(inner), 1) + sum(map(values, inner))


@given(VALUES, st.integers(1, 9), st.sampled_from([None, 2]), st.booleans())
def test_strings_and_what_is_outside_of_them_are_counted(
    value: Json, size: int, indent: int | None, lenient: bool
) -> None:
    """Wherever chunks begin and end, also within an escape; whitespace does not count."""
    data = json.dumps(value, indent=indent).encode()
    counter = JsonCounter(lenient=lenient)
    for at in range(0, len(data), size):
        counter.add(data[at : at + size])
    found = strings(value)
    compact = json.dumps(value, separators=(",", ":"))
    assert counter.strings == len(found)
    assert counter.values == values(value)
    assert counter.structure == len(compact) - sum(len(json.dumps(text)) for text in found)


def test_a_lone_quotation_mark_hides_nothing_of_the_next_line() -> None:
    """A comment of an event stream may contain one."""
    counter = JsonCounter()
    counter.add(b': "')
    counter.add(b"\rdata:[[],[]]")
    assert counter.structure == len(b":data:[[],[]]")


@given(VALUES, st.text(st.sampled_from('a"\\\n\x01\t')), st.integers(1, 9))
def test_a_raw_control_character_hides_nothing_from_a_lenient_parser(value: Json, text: str, size: int) -> None:
    """L6: to such a parser it is part of a string."""
    raw = json.dumps(text).replace("\\n", "\n").replace("\\u0001", "\x01").replace("\\t", "\t").encode()
    counter, plain = JsonCounter(lenient=True), JsonCounter(lenient=True)
    data = b"[" + raw + b"," + json.dumps(value).encode() + b"]"
    for at in range(0, len(data), size):
        counter.add(data[at : at + size])
    plain.add(json.dumps([text, value]).encode())
    assert (counter.strings, counter.structure) == (plain.strings, plain.structure)


def test_too_many_values_are_found_wherever_they_are() -> None:
    """L6: text of any length is no value."""
    text = b'"' + b"[],{}" * 100_000 + b'"'
    assert not has_too_many_values(b"[" + text + b"]")
    assert has_too_many_values(b"[" + text + b"," + b"[]," * LARGE + b"1]")
    assert has_too_many_values(b"[" + text + b"," + b'"",' * LARGE + b"1]")
    assert has_too_many_values(b'["\x01",' + b"[]," * LARGE + b'1, "\x01"]')


@pytest.mark.parametrize(
    ("data", "structure", "strings"), [(b"[" + b"0," * 500 + b"0]", 1003, 0), (b'["a","b"]', 3, 2)]
)
def test_values_are_many_beyond_a_limit(
    data: bytes, structure: int, strings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either limit counts; the data is counted in slices."""
    monkeypatch.setattr(json_limits, "STEP", 4)
    assert not has_too_many_values(data, structure, strings)
    assert has_too_many_values(data, structure - 1, strings)
    assert not strings or has_too_many_values(data, structure, strings - 1)
