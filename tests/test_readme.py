"""What the README shows is executed."""

import re
from pathlib import Path
from typing import Any

import anyio
import pytest

README = Path(__file__).parent.parent / "README.md"


def test_the_library_example_of_the_readme_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The Python block streams a run to its end and finds it complete."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) == 1
    scope: dict[str, Any] = {}
    exec(compile(blocks[0], str(README), "exec"), scope)
    anyio.run(scope["main"], tmp_path / "data")
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "1 run.started"
    assert [line.split()[1] for line in printed[1:-1]][-1] == "run.complete"
    assert printed[-1] == "['complete', 'complete']"
