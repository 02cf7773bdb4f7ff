"""Returns freed memory to the operating system."""

from __future__ import annotations

import ctypes
import sys


def return_freed_memory() -> None:
    """Return what the allocator holds back of freed memory; do nothing without GNU's C library.

    It holds freed memory back wherever later blocks are in use: after a burst of records more than
    100 MB. Takes some milliseconds, without the interpreter's lock.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(ctypes.c_size_t(0))
