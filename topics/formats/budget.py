"""Bounds what a record may become: a few bytes of a crafted one can stand for gigabytes of JSON.

A list of 3,000 nulls takes three bytes of Avro, and an empty message two of Protobuf, whatever
fields its schema has. So reading spends, before it makes an object or a list, less than the bytes
that this will take as JSON. Each thread reads one record at a time.
"""

from __future__ import annotations

from threading import local

from .errors import LargeContentError


class _Budget(local):
    left = 0


_budget = _Budget()


def allow(most: int) -> None:
    """Let the next record of this thread have so many bytes as JSON."""
    _budget.left = most


def spend(size: int) -> None:
    """Spend bytes of the record that is being read.

    Raises
    ------
    LargeContentError
        More than what is allowed is spent.
    """
    _budget.left -= size
    if _budget.left < 0:
        raise LargeContentError("its JSON is too large")


def left() -> int:
    """Return how much of the record that is being read may still be spent."""
    return _budget.left


def require(size: int) -> None:
    """Raise as `spend` if so much cannot be spent."""
    spend(size)
    _budget.left += size
