"""Objects whose state is arrays: those of their attributes, as a schema says."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faust_oslrau.learner.arrays import Arrays, IntArray

from .state_schema import Entry, read

SLOTS = "slots"
"""First dimension of arrays that have a row for each slot."""

FIELDS = ("d", "w")
"""Dimensions along which arrays have something for each field."""

T = TypeVar("T", bound=np.generic)


class Places(NamedTuple):
    """Where fields are after others were added: their places ``old`` (d,) among all ``n``."""

    old: IntArray
    n: int

    @property
    def new(self) -> IntArray:
        """The places of the fields that were added."""
        return np.setdiff1d(np.arange(self.n), self.old)

    @classmethod
    def after(cls, first: int, n: int, k: int) -> Places:
        """Return the places of ``n`` things where ``k`` others come after the ``first`` ones."""
        return cls(np.append(np.arange(first), np.arange(first + k, n + k)), n + k)

    def widened(self, array: NDArray[T], axis: int, new: ArrayLike = np.nan) -> NDArray[T]:
        """Return an array with what is ``new`` for the added fields along an axis.

        One that has nothing for any field stays as it is.
        """
        if array.shape[axis] == 0:
            return array
        shape = *array.shape[:axis], self.n, *array.shape[axis + 1 :]
        wider: NDArray[Any] = np.full(shape, new, array.dtype)
        wider[(slice(None),) * axis + (self.old,)] = array
        return wider


class Stored:
    """An object whose state is some of its attributes.

    Attributes
    ----------
    schema
        What the array of each attribute has to be. Those of flags are booleans here, those of one
        number are that number.
    prefix
        What the names of the arrays begin with; then comes that of the attribute.
    """

    schema: ClassVar[Mapping[str, Entry]]
    prefix: ClassVar[str] = ""

    def state(self, slots: int | None = None) -> Arrays:
        """Return the attributes as arrays; of those with a row for each slot, the first ``slots``.

        All of them by default: there may be room for more slots than are in use.
        """
        arrays = {}
        for name, entry in self.schema.items():
            array = np.atleast_1d(getattr(self, name))
            some = array[:slots] if entry.shape[0] == SLOTS else array
            arrays[self.prefix + name.lstrip("_")] = some.astype(entry.dtype, copy=False)
        return arrays

    def read_state(self, arrays: Arrays, **sizes: int | Container[int]) -> None:
        """Restore a state with dimensions of such ``sizes``; StateError if it cannot be one."""
        entries = {name.lstrip("_"): entry for name, entry in self.schema.items()}
        values = read(arrays, entries, self.prefix, **sizes)
        for name, value in zip(self.schema, values, strict=True):
            setattr(self, name, value)

    def reserve(self, slots: int, **sizes: int) -> None:
        """Make room for so many slots; ``sizes`` are those of the other dimensions."""
        for name, entry in self._of_slots():
            array = getattr(self, name)
            if len(array) == 0:
                shape = [sizes[size] if isinstance(size, str) else size for size in entry.shape[1:]]
                array = np.empty((0, *shape), array.dtype)
            setattr(self, name, enlarged(array, slots, entry.new))

    def clear(self, slot: int) -> None:
        """Forget what is known of a slot."""
        for name, entry in self._of_slots():
            getattr(self, name)[slot] = entry.new

    def add_fields(self, places: Places) -> None:
        """Make room for more fields, of which nothing is known yet."""
        for name, entry in self.schema.items():
            for axis, dimension in enumerate(entry.shape):
                if dimension in FIELDS:
                    setattr(self, name, places.widened(getattr(self, name), axis, entry.field))

    def _of_slots(self) -> list[tuple[str, Entry]]:
        return [item for item in self.schema.items() if item[1].shape[0] == SLOTS]


def enlarged(array: NDArray[T], n: int, new: ArrayLike = 0) -> NDArray[T]:
    """Return an array with room for ``n`` slots; those beyond the ones it has are ``new``."""
    if len(array) >= n:
        return array
    larger: NDArray[Any] = np.full((n, *array.shape[1:]), new, array.dtype)
    larger[: len(array)] = array
    return larger


def doubled(held: int, needed: int) -> int:
    """Return for how many slots to have room, in steps that double it."""
    return held if held >= needed else max(needed, 2 * held)
