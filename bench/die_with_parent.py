"""`python -m bench.die_with_parent COMMAND …` executes a command that is killed when its parent process ends.

No server outlives an interrupted bench.
"""

import ctypes
import os
import signal
import sys

if __name__ == "__main__":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    os.execvp(sys.argv[1], sys.argv[1:])
