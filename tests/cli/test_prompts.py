"""`holdfast prompts`."""

import json
from pathlib import Path

from tests.cli.terminal import as_json, ok, refused
from tests.http.conftest import Start


def test_prompts_are_saved_filled_and_taken_elsewhere(start: Start, tmp_path: Path) -> None:
    """With a running server and without; an import replaces only if it is told to."""
    server = start()
    data = server.data_dir
    for _ in range(2):
        ok("prompts", "save", "greet", "Hello {{name}}{{end=!}}", "--description", "Says hello", data=data)
        (row,) = ok("prompts", "list", data=data).splitlines()
        assert row.split("\t") == ["greet", "name, end", "Says hello"]
        assert ok("prompts", "fill", "greet", "name=Anna=A", data=data) == "Hello Anna=A!\n"
        server.terminate()
    refused("prompts", "fill", "greet", data=data, message="name")
    refused("prompts", "fill", "greet", "name", data=data, message="NAME=VALUE")
    refused("prompts", "show", "unknown", data=data, message="unknown")
    file = tmp_path / "prompts.json"
    file.write_text(ok("prompts", "export", data=data))
    assert len(json.loads(file.read_text())["prompts"]) == 1
    ok("prompts", "save", "greet", "Hi", data=data)
    ok("prompts", "import", file, data=data)
    assert ok("prompts", "show", "greet", data=data) == "Hi\n"
    ok("prompts", "import", file, "--replace", data=data)
    assert ok("prompts", "show", "greet", data=data) == "Hello {{name}}{{end=!}}\n"
    file.write_text("no library")
    refused("prompts", "import", file, data=data, message="prompt library")
    refused("prompts", "import", tmp_path / "missing", data=data, message="cannot be read")
    ok("prompts", "delete", "greet", data=data)
    assert as_json("prompts", "list", data=data) == []
