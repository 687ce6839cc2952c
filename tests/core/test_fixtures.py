"""Recorded journals and the parts they fold to. The browser's reducer is tested on the same files."""

import json
from pathlib import Path

import pytest

from holdfast.core.events import Entry, UnknownEvent, decode, encode, entry
from holdfast.core.parts import Json, all_from_json, all_to_json
from holdfast.core.transcript import EMPTY, fold

FIXTURES = Path(__file__).parent.parent / "fixtures"
NAMES = sorted(path.stem for path in FIXTURES.glob("*.jsonl"))


def lines(name: str) -> list[dict[str, Json]]:
    text = (FIXTURES / f"{name}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def journal(name: str) -> list[Entry]:
    return [entry(line["seq"], decode(line["type"], line["data"]), line["data"].get("at")) for line in lines(name)]


def expected(name: str) -> Json:
    return json.loads((FIXTURES / f"{name}.parts.json").read_text("utf-8"))


def test_every_recorded_journal_has_its_parts() -> None:
    """Each journal has a file of expected parts and each such file a journal."""
    assert len(NAMES) >= 8
    assert sorted(path.name.removesuffix(".parts.json") for path in FIXTURES.glob("*.parts.json")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_journal_folds_to_its_parts(name: str) -> None:
    """X4: fold gives exactly the recorded parts, in one go and event by event."""
    assert all_to_json(fold(journal(name)).parts) == expected(name)
    grown = EMPTY
    for item in journal(name):
        grown = fold([item], grown)
    assert all_to_json(grown.parts) == expected(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_journal_is_what_we_write(name: str) -> None:
    """Every recorded event is known (but for one that is meant not to be) and is encoded to the very same data."""
    for line in lines(name):
        event = decode(line["type"], line["data"])
        assert isinstance(event, UnknownEvent) is line["type"].startswith("future.")
        said = {name: value for name, value in line["data"].items() if name != "at"}
        assert encode(event) == (line["type"], said)


@pytest.mark.parametrize("name", NAMES)
def test_recorded_parts_can_seed_a_message(name: str) -> None:
    """X5: the recorded parts are read and written again without loss."""
    assert all_to_json(all_from_json(expected(name))) == expected(name)
