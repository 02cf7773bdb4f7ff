"""Gives memory back to the operating system, where it is Linux; elsewhere nothing happens."""

from __future__ import annotations

import ctypes
import re
import sys
from pathlib import Path

_ARENA_MAX = -8  # M_ARENA_MAX in malloc.h
_DONT_NEED = 4  # MADV_DONTNEED in mman.h
_COMPILER_CODE = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) r-xp .*llvmlite", re.MULTILINE)


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


def return_compiler() -> None:
    """Return the code of the compiler, some 60 MB, to the operating system's file cache.

    The worker has no use for it once its kernels are compiled. Should a kernel be missing, the
    pages come back: code is never changed, so nothing is lost.
    """
    maps = Path("/proc/self/maps")
    if sys.platform == "linux" and maps.exists():
        library = ctypes.CDLL(None)
        for found in _COMPILER_CODE.finditer(maps.read_text()):
            start, end = (int(address, 16) for address in found.groups())
            library.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _DONT_NEED)
