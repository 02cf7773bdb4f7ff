"""Whole numbers of variable length, as Avro and Protobuf write them."""

from __future__ import annotations

from .errors import ContentError

_LAST_SHIFT = 63


def zigzag(value: bytes, at: int) -> tuple[int, int]:
    """Return the number at a position, and the position after it.

    Raises
    ------
    IndexError
        The bytes end within it.
    ContentError
        It has more than 64 bits.
    """
    byte = value[at]
    at += 1
    found, shift = byte & 127, 7
    while byte > 127:
        if shift > _LAST_SHIFT:
            raise ContentError("a number has more than 64 bits")
        byte = value[at]
        at += 1
        found |= (byte & 127) << shift
        shift += 7
    return (found >> 1) ^ -(found & 1), at
