"""`python -m bench.leash COMMAND …` becomes the command, and is killed when whoever started it is: no server outlives a
bench that was interrupted."""

import ctypes
import os
import signal
import sys

if __name__ == "__main__":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    os.execvp(sys.argv[1], sys.argv[1:])
