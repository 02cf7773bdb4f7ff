"""Makes a child process end with its parent."""

from __future__ import annotations

import ctypes
import signal
import sys

_PR_SET_PDEATHSIG = 1
# Loaded here, not in the child: little code is safe between fork and exec.
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def die_with_parent() -> None:
    """Let the kernel kill this process when its parent's thread ends; for `preexec_fn`.

    It survives `exec`, and also works if the parent is killed. It has an effect on Linux only.
    """
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
