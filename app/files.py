"""Reads files that a user names, in bounded time and memory."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

LARGEST_MODEL = 2**32
"""More bytes than the model of any partition has."""

LARGEST_PEM = 10_000_000
"""More bytes than the authorities of any system have."""

_LARGEST_SECRET = 65_536


def read_secret(path: str) -> str:
    """Return a password or token, without the ends of lines after it.

    Raises
    ------
    OSError
        As `read_file`.
    ValueError
        It is not UTF-8.
    """
    return read_file(path, _LARGEST_SECRET).decode().rstrip("\r\n")


def read_file(path: str | Path, most: int) -> bytes:
    """Return the content of a file of at most so many bytes.

    A device may have no end, and a pipe nobody who writes to it.

    Raises
    ------
    OSError
        There is no such file, it cannot be read, is none, or is too large; `strerror` says so.
    """
    # Without blocking: opening a pipe would wait for somebody who writes.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"more than {most:,} bytes")
    return content
