"""Checks what other programs may have written: answers of a registry, and messages of a topic."""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec

from faust_oslrau.topics.formats import LARGEST_ID

Wanted = TypeVar("Wanted")

SchemaId = Annotated[int, msgspec.Meta(ge=1, le=LARGEST_ID)]
"""An id that a registry gives, and that a record can hold."""


def read(wanted: type[Wanted], content: bytes | None) -> Wanted:
    """Return JSON as a struct of msgspec; members that it does not have are passed over.

    Raises
    ------
    ValueError
        It is anything else.
    """
    try:
        return msgspec.json.decode(content or b"", type=wanted)
    except RecursionError as error:
        raise ValueError(str(error)) from None
