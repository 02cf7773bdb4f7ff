"""What is wrong with a schema, or with a record of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Content = TypeVar("Content")

_MOST_TOLD = 300  # of a library's words, which may contain a whole schema


class SchemaError(ValueError):
    """A schema cannot be used."""


class ContentError(ValueError):
    """A record does not follow its schema."""


class LargeContentError(ContentError):
    """A record would be too large as JSON."""


RETRIED = (OSError, MemoryError, ImportError)
"""What says nothing of a schema or record, but of the machine, such as a full disk.

A file name of a schema must thus never reach the disk.
"""


def told(error: Exception) -> str:
    """Return the words of a library's error in one line."""
    words = " ".join(str(error).split())
    text = f"{type(error).__name__}: {words}" if words else type(error).__name__
    return text if len(text) <= _MOST_TOLD else f"{text[:_MOST_TOLD]}…"


def checked(call: Callable[[Content], bytes], content: Content) -> bytes:
    """Return what a function makes of a record, or of what becomes one.

    Raises
    ------
    ContentError
        It raises any error but those that are retried.
    """
    try:
        return call(content)
    except (ContentError, *RETRIED):
        raise
    except Exception as error:
        raise ContentError(told(error)) from error
