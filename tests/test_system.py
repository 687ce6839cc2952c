"""Protection of the process's memory."""

import subprocess
import sys

import pytest

LOOK = """
import ctypes, os
from holdfast.system import hide_process_memory

if os.getuid() == 0:  # root may read everything
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)

def can_be_read():
    if os.fork() == 0:
        try:
            open(f"/proc/{os.getppid()}/environ", "rb").read()
        except PermissionError:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.wait()[1]) == 0

before = can_be_read()
hide_process_memory()
print(before, can_be_read())
"""


START = """
import ctypes, sys

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "holdfast.cli.app":
            print("dumpable:", ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), flush=True)  # PR_GET_DUMPABLE

sys.meta_path.insert(0, Watch())
sys.argv = ["holdfast", "--help"]
from holdfast.__main__ import main
main()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux exposes environments in /proc")
def test_a_command_is_hidden_before_it_imports_anything() -> None:
    """The process is not readable for others from its start, not only once the server listens."""
    done = subprocess.run([sys.executable, "-c", START], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[0] == "dumpable: 0"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux exposes environments in /proc")
def test_environment_of_the_server_is_hidden_from_commands() -> None:
    """A process of the same user cannot read the keys in the server's environment."""
    done = subprocess.run([sys.executable, "-c", LOOK], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["True", "False"]
