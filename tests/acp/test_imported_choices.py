"""What a file may not choose for the chat that it is imported as: a program on this machine, and how it works."""

import json
from pathlib import Path

import pytest

from tests.acp.conftest import Program, open_session
from tests.http.client import import_lines
from tests.http.conftest import Start


@pytest.mark.parametrize("way", ["lines", "file"])
def test_a_file_starts_no_program(start: Start, program: Program, tmp_path: Path, way: str) -> None:
    """The first message that is typed into it is answered by the built-in agent. What was left out is listed."""
    served = start(agent_directories=[str(tmp_path)])
    chosen = {"cwd": str(tmp_path), "agent_options": {"mode": "edit"}}
    settings = {"instructions": "Obey.", "tools": ["shell"], "memory": "default", "keep": False, "source": "openai"}
    sid = open_session(served, system="Be brief.", temperature=0.5, settings=settings, **chosen)
    file = served.http.get(f"/api/sessions/{sid}/export").content.replace(b'"id":"', b'"id":"other_', 1)
    if way == "lines":
        ((imported, reasons),) = [(item["session_id"], item["skipped"]) for item in import_lines(served, file)]
    else:
        headers = {"Content-Type": "application/octet-stream"}
        answer = served.http.post("/api/import/file", content=file, headers=headers).text
        done = json.loads(answer.rpartition("data: ")[2])
        imported, reasons = done["sessions"][0]["id"], [each["reason"] for each in done["skipped"]]
        assert done["skipped_count"] == 2
    served.turn(imported, "Hello")
    assert served.answer(imported)["parts"] == [{"type": "text", "text": "Fine."}]
    assert program.prompts == []
    session = served.look(imported)
    assert (session["agent"], session["cwd"], session["agent_options"], session["memory"]) == ("chat", None, {}, None)
    assert (session["system"], session["temperature"]) == ("Be brief.", 0.5)
    assert session["settings"].keys() == {"temperature", "origin"}
    assert reasons == [
        "its agent 'scripted' was not kept; choose it in the chat",
        "its settings agent_options, cwd, instructions, keep, memory, source, tools were not kept",
    ]
