"""Memory of the C library's allocator, where it is GNU's; nothing happens with another one."""

from __future__ import annotations

import ctypes
import sys

_ARENA_MAX = -8  # M_ARENA_MAX in malloc.h


def share_one_heap() -> None:
    """Let threads that start later allocate from one heap.

    Each thread would have its own, and hold back what it has freed: 10 to 20 MB together.
    """
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        if hasattr(library, "mallopt"):
            library.mallopt(_ARENA_MAX, 1)


def return_freed_memory() -> None:
    """Return freed memory to the operating system.

    The heap holds it back wherever later blocks are in use. Takes some milliseconds, without the
    interpreter's lock.
    """
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        if hasattr(library, "malloc_trim"):
            library.malloc_trim(ctypes.c_size_t(0))
