"""`holdfast personas`."""

from tests.cli.terminal import as_json, ok, refused
from tests.http.conftest import Start


def test_personas_are_created_shown_and_deleted(start: Start) -> None:
    """With a running server and without."""
    server = start()
    data = server.data_dir
    made = ok("personas", "create", "Pilot", "--emoji", "⚓", "--instructions", "Be brief.", "--no-tools", data=data)
    for _ in range(2):
        (row,) = ok("personas", "list", data=data).splitlines()
        assert row.split("\t")[:2] == [made.strip(), "Pilot"]
        shown = ok("personas", "show", made.strip(), data=data)
        assert "Be brief." in shown
        assert "use tools\tFalse" in shown
        server.terminate()
    refused("personas", "show", "per_unknown", data=data, message="per_unknown")
    ok("personas", "delete", made.strip(), data=data)
    assert as_json("personas", "list", data=data) == []
