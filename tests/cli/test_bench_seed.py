"""`holdfast bench seed`: creates a directory of the requested size and touches no other."""

from pathlib import Path

from tests.cli.terminal import as_json, ok, refused


def test_a_seeded_directory_has_what_was_asked_for(data: Path) -> None:
    """The directory has the requested sessions and messages, the rare word and the longest session."""
    ok("bench", "seed", "--sessions", 1010, "--messages", 2, "--longest", 30, data=data)
    sessions = as_json("sessions", "list", "--limit", 1000, data=data)
    assert len(sessions) == 1000  # the most that are listed
    assert sessions[0]["id"] == "ses_00001010"
    assert len(as_json("sessions", "show", "ses_00001010", data=data)["messages"]) == 30
    assert len(as_json("sessions", "show", "ses_00000000", data=data)["messages"]) == 2
    found = as_json("sessions", "search", "harbour", data=data)
    assert [item["id"] for item in found] == ["ses_00001007", "ses_00000007"]
    assert as_json("doctor", data=data)["ok"]


def test_seeding_refuses_a_directory_that_is_in_use(data: Path) -> None:
    """A directory that is not empty is refused."""
    data.mkdir()
    (data / "mine").write_text("mine")
    refused("bench", "seed", data=data, message="is not empty")
    assert [file.name for file in data.iterdir()] == ["mine"]
