"""Executes the commands that the documentation shows."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from holdfast.cli.exit_codes import ExitCode
from tests.cli.terminal import ok
from tests.fork_server import ROOT
from tests.http.client import Served

GUIDES = ROOT / "docs" / "how-to"
REFERENCE = ROOT / "docs" / "reference" / "cli.md"


def test_commands_of_the_guides_work(server: Served, tmp_path: Path) -> None:
    """Backup, doctor, password and token work next to a running server as the guides show them."""
    ok("chat", "hello", data=server.data_dir)
    backups = tmp_path / "backups"
    backups.mkdir()
    pages = [(GUIDES / name).read_text() for name in ("backup.md", "access.md")]
    blocks = [block for page in pages for block in re.findall(r"```bash\n(.*?)```", page, re.DOTALL)]
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
        done = subprocess.run(command, check=False, env=environ, capture_output=True, text=True, cwd=ROOT)
        assert done.returncode == 0, done.stderr
    assert (backups / "monday" / "holdfast.db").exists()
    assert "laptop" in ok("token", "list", data=server.data_dir)


def test_reference_lists_every_exit_code() -> None:
    """The table of exit codes in the reference is the one in the code."""
    assert re.findall(r"^\| (\d+) \|", REFERENCE.read_text(), re.MULTILINE) == [str(int(code)) for code in ExitCode]
