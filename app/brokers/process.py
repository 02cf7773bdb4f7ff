"""Child processes that do not outlive this one."""

from __future__ import annotations

import ctypes
import signal
import sys

_PR_SET_PDEATHSIG = 1
# Loaded here and not in the child: between fork and exec as little as possible may run.
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def die_with_parent() -> None:
    """Let the kernel kill this process when its parent's thread ends; for `preexec_fn`.

    It holds through `exec`, and where the parent is killed too. Linux only, elsewhere no effect.
    """
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
