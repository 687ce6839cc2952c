"""`holdfast bench seed`: a directory of the size that was asked for, and no other is touched."""

from pathlib import Path

from holdfast.faces.cli.exits import Exit
from tests.cli.terminal import as_json, holdfast, ok


def test_a_seeded_directory_has_what_was_asked_for(data: Path) -> None:
    """Sessions and messages are as many as were asked for, the rare word is in one session of a thousand, and the
    longest session is there."""
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
    """A directory with anything in it is left alone."""
    data.mkdir()
    (data / "mine").write_text("mine")
    done = holdfast("bench", "seed", data=data)
    assert done.returncode == Exit.FAILED
    assert b"is not empty" in done.stderr
    assert [file.name for file in data.iterdir()] == ["mine"]
