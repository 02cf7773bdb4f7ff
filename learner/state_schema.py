"""What the arrays of a state have to be, said once for each; a state that differs is refused."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import StateError
from .state import MOST_RECORDS

LARGEST = float(np.finfo(np.float64).max)

LARGEST_LEARNED = 1e150
"""Value that larger ones count as where they are learned, so that squares are numbers. Some devices
send the largest number there is in place of a missing one."""

POSITIVE = float(np.nextafter(0.0, 1.0))
"""Least number above 0."""

BELOW_ONE = float(np.nextafter(1.0, 0.0))
"""Largest number below 1."""


class Entry(NamedTuple):
    """What an array has to be.

    Attributes
    ----------
    shape
        Its dimensions. Those with the same name are equal in all arrays of a schema.
    least, most
        Its range, both ends included, which may differ along its last dimensions. Infinite numbers
        are in no range but one that ends there.
    dtype
        Its type, as `state` has it.
    nan
        Whether numbers may be missing.
    new
        A row of a slot of which nothing is known yet, where there is one for each slot.
    field
        What a field of which nothing is known yet has, where there is something for each field.
    """

    shape: tuple[int | str, ...]
    least: ArrayLike = -LARGEST
    most: ArrayLike = LARGEST
    dtype: str = "<f8"
    nan: bool = False
    new: ArrayLike = 0.0
    field: ArrayLike = 0.0

    @property
    def is_of_flags(self) -> bool:
        """Whether the array stands for booleans."""
        return self.dtype == "|u1" and self.most == 1


def counts(*shape: int | str, most: int = MOST_RECORDS - 1) -> Entry:
    """Return an entry of whole numbers from 0 to ``most``."""
    return Entry(shape, 0, most, "<i8")


def flags(*shape: int | str) -> Entry:
    """Return an entry of zeros and ones."""
    return Entry(shape, 0, 1, "|u1")


def expect(valid: bool | np.bool_, what: str) -> None:
    """Raise StateError unless ``valid``; ``what`` names what is expected of a state."""
    if not valid:
        raise StateError(f"state: expected {what}")


def check_types(values: Mapping[str, Any], types: Mapping[str, tuple[type, ...]]) -> None:
    """Refuse values of other types than JSON has for them; StateError names the first one."""
    for name, allowed in types.items():
        value = values.get(name)
        if type(value) not in allowed:
            expected = " or ".join(kind.__name__ for kind in allowed)
            raise StateError(f"state: expected {name} as {expected}, got {value!r}")


def read(
    arrays: Mapping[str, NDArray[Any]],
    schema: Mapping[str, Entry],
    prefix: str = "",
    **sizes: int | Container[int],
) -> list[Any]:
    """Return the arrays of a schema in its order; StateError if one is not what it has to be.

    Flags come as booleans, and arrays of one number as this number. ``sizes`` are those that named
    dimensions may have, any if none are given. The names of the arrays begin with ``prefix``.
    """
    found, known = [], dict(sizes)
    for name, entry in schema.items():
        array = arrays.get(prefix + name)
        expected = f"state: expected {prefix}{name} as {entry.dtype} of shape {entry.shape}"
        if array is None or array.dtype != entry.dtype or array.ndim != len(entry.shape):
            raise StateError(f"{expected}, got {_kind(array)}")
        for size, dimension in zip(array.shape, entry.shape, strict=True):
            allowed = known.get(dimension, size) if isinstance(dimension, str) else dimension
            if size not in ((allowed,) if isinstance(allowed, int) else allowed):
                raise StateError(f"{expected} where {dimension} = {allowed}, got {_kind(array)}")
            known[str(dimension)] = size
        _check_range(array, entry, prefix + name)
        value = array.astype(np.bool_) if entry.is_of_flags else array
        found.append(value.item() if entry.shape == (1,) else value)
    return found


def _kind(array: NDArray[Any] | None) -> str:
    return "none" if array is None else f"{array.dtype.str} of shape {array.shape}"


def _check_range(array: NDArray[Any], entry: Entry, name: str) -> None:
    # arrays of doubles, so that the ends are not rounded to the array's own type
    least, most = (np.atleast_1d(np.asarray(end, np.float64)) for end in entry[1:3])
    valid = (array >= least) & (array <= most)
    if entry.nan:
        valid |= np.isnan(array)
    if not valid.all():
        missing = " or missing" if entry.nan else ""
        raise StateError(f"state: expected {name} {_range(entry)}{missing}")


def _range(entry: Entry) -> str:
    """Say in words which numbers an array may have."""
    most = "finite" if entry.most == LARGEST else f"at most {entry.most}"
    if entry.least == -LARGEST:
        return most
    return f"{'above 0' if entry.least == POSITIVE else f'at least {entry.least}'} and {most}"
