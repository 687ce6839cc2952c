"""docs/reference/openai-api.md agrees with the code, and its example runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

from holdfast.server.openai.parameters import IGNORED, REFUSED
from holdfast.server.openai.schemas import ChatRequest, ResponseRequest
from tests.http.client import Served

DOCUMENT = (Path(__file__).parents[2] / "docs" / "reference" / "openai-api.md").read_text()


def section(heading: str) -> str:
    found = re.search(rf"^### {heading}\n(.*?)(?=^#|\Z)", DOCUMENT, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def test_the_document_says_what_happens_to_every_parameter() -> None:
    """Every parameter of a call is in the section that says what the code does with it."""
    parameters = {*ResponseRequest.model_fields, *ChatRequest.model_fields}
    honored, ignored, refused = (
        parameters & set(re.findall(r"`([a-z_]+)`", section(heading))) for heading in ("Honored", "Ignored", "Refused")
    )
    assert refused - honored - {"include"} == set(REFUSED)
    assert ignored - {"include"} == set(IGNORED)
    assert honored == parameters - set(REFUSED) - set(IGNORED)


def test_the_example_of_the_document_runs(shared: Served) -> None:
    """A conversation through `previous_response_id`, and a detached chat whose headers name its run."""
    (example,) = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
    environ = {**os.environ, "HOLDFAST_URL": shared.url}
    done = subprocess.run([sys.executable, "-c", example], check=False, env=environ, capture_output=True, text=True)
    assert (done.stdout.splitlines(), done.stderr) == (["completed True", "True user"], "")
