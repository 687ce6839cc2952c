"""What docs/operations.md shows is executed."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from holdfast.faces.cli.exits import Exit
from tests.cli.terminal import GUARD, ok
from tests.http.client import Served
from tests.nursery import ROOT

PAGE = ROOT / "docs" / "operations.md"


def test_the_commands_of_the_page_work(server: Served, tmp_path: Path) -> None:
    """Backup, doctor, password and token, as they are written there, beside a running server."""
    ok("chat", "hello", data=server.data_dir)
    backups = tmp_path / "backups"
    backups.mkdir()
    blocks = re.findall(r"```bash\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 2
    function = f'holdfast() {{ {shlex.quote(sys.executable)} -m holdfast "$@"; }}\n'
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "BACKUPS": str(backups),
        "HOLDFAST_DATA_DIR": str(server.data_dir),
    }
    for block in blocks:
        command = ["bash", "-euo", "pipefail", "-c", function + block]
        done = subprocess.run(
            command, check=False, env=environ, capture_output=True, text=True, timeout=GUARD, cwd=ROOT
        )
        assert done.returncode == 0, done.stderr
    assert (backups / "monday" / "holdfast.db").exists()
    assert "laptop" in ok("token", "list", data=server.data_dir)


def test_the_page_has_every_exit_code() -> None:
    """One table in the code, the same one on the page."""
    assert re.findall(r"^\| (\d+) \|", PAGE.read_text(), re.MULTILINE) == [str(int(code)) for code in Exit]
