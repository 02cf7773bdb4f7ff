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
    words, name = one_line(str(error)), type(error).__name__
    return f"{name}: {words}" if words else name


def one_line(text: str) -> str:
    """Return the beginning of a text, which may hold what a schema holds, in one line of UTF-8."""
    text = " ".join(text[: 2 * _MOST_TOLD].split())
    shown = text if len(text) <= _MOST_TOLD else f"{text[:_MOST_TOLD]}…"
    return shown.encode(errors="backslashreplace").decode()


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
