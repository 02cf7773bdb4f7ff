"""Which values of each field are told apart: the most frequent ones; the others are one."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray, IntArray, Mask
from faust_oslrau.learner.state_schema import Entry, counts, expect, read
from faust_oslrau.learner.stored import Places
from faust_oslrau.learner.vector.compiler import Array, kernel

MOST_SLOTS = 512
"""Values that are told apart in all fields together: what is known of pairs of them grows with the
square."""

MOST_VALUES = 255
"""Values that are told apart in one field."""

MISSING = -1
"""Slot of a value that is missing."""


def most_values(c: int) -> int:
    """Return the most values of each of ``c`` fields that are told apart."""
    return min(MOST_VALUES, MOST_SLOTS // c)


_VALUES = {
    "codes": Entry(("s",), nan=True),
    "field": counts("s"),
    "sketch": Entry(("s",), 0.0),
}


class Values:
    """A slot for each value that is told apart; the first ``c`` ones are the fields' *rests*.

    The rest of a field is all of its values without a slot, those not seen so far among them. Who
    has a slot is decided by the Space-Saving sketch (Metwally, Agrawal, El Abbadi 2005): a new
    value takes the place of the one with the lowest count, and goes on from that count.

    Attributes
    ----------
    codes
        The value of each slot (s,), NaN for a rest.
    field
        The field of each slot (s,).
    members, order, ends
        The slots (s,) in the order of fields, each field's rest first; in the order of fields and
        values, each field's rest last; and where fields begin and end in both (c + 1,).
    """

    def __init__(self, c: int) -> None:
        self.codes, self.field = np.full(c, np.nan), np.arange(c)
        self._sketch = np.zeros(c)
        self._index()

    @property
    def most(self) -> int:
        """The most values of a field that are told apart."""
        return most_values(len(self.ends) - 1)

    def slots(self, codes: FloatArray) -> IntArray:
        """Return the slot of each value (m, c), `MISSING` for NaN."""
        result = np.full(codes.shape, MISSING)
        codes = np.ascontiguousarray(codes)  # kernels are compiled for no other layout
        fill_slots(codes, self.codes, self.order, self.ends, result)
        return result

    def told_apart(self, count: FloatArray) -> IntArray:
        """Return by which slot each slot's value goes (s + 1,), given its records (s,).

        The rest's until it has come as often as the one whose place it took: of many values alike,
        one that has just a place would be taken for a rare one. The last one is `MISSING`.
        """
        own = np.arange(len(self.field))
        return np.append(np.where(2.0 * count >= self._sketch, own, self.field), MISSING)

    def learn(self, codes: FloatArray) -> tuple[IntArray, IntArray]:
        """Count the values (m, c) of a learning batch, and give slots to new ones.

        Return the slots (m, c) of the values, and those that have another value now.
        """
        slots = self.slots(codes)
        taken: list[int] = []
        known = slots[slots >= codes.shape[1]]
        self._sketch += np.bincount(known, minlength=len(self._sketch))
        fields = np.flatnonzero((slots == np.arange(codes.shape[1])).any(axis=0)).tolist()
        for f in fields:
            found, number = np.unique(codes[slots[:, f] == f, f], return_counts=True)
            taken += self._give_slots(f, found, number)
        if fields:
            self._index()
            slots = self.slots(codes)
        return slots, np.array(taken, np.int64)

    def forget(self, share: float) -> None:
        """Reduce all counts to a share of themselves."""
        self._sketch *= share

    def beyond(self, most: int) -> Mask:
        """Return which slots (s,) are not among the ``most`` frequent ones of their field."""
        found = np.zeros(len(self.field), np.bool_)
        for f in range(len(self.ends) - 1):
            held = np.flatnonzero(self.field == f)[1:]  # without the rest
            rare = np.argsort(self._sketch[held], kind="stable")[: max(len(held) - most, 0)]
            found[held[rare]] = True
        return found

    def leave_out(self, which: Mask) -> None:
        """Forget some slots (s,)."""
        self.codes, self.field, self._sketch = (
            array[~which] for array in (self.codes, self.field, self._sketch)
        )
        self._index()

    def add_fields(self, k: int) -> Places:
        """Make room for ``k`` more fields; return the places of the slots among all then."""
        c = len(self.ends) - 1
        places = Places.after(c, len(self.field), k)
        self.codes = places.widened(self.codes, 0)
        self._sketch = places.widened(self._sketch, 0, 0.0)
        self.field = places.widened(self.field, 0, 0)
        self.field[c : c + k] = np.arange(c, c + k)
        self._index()
        return places

    def _give_slots(self, f: int, codes: FloatArray, counts: IntArray) -> list[int]:
        """Give slots of field ``f`` to new values; return those that other values had."""
        n = min(self.most + 1 - int(np.count_nonzero(self.field == f)), len(codes))
        self.codes = np.append(self.codes, codes[:n])
        self.field = np.append(self.field, np.full(n, f))
        self._sketch = np.append(self._sketch, counts[:n])
        held, taken = np.flatnonzero(self.field == f)[1:], []  # without the rest
        for code, count in zip(codes[n:], counts[n:], strict=True):
            slot = int(held[self._sketch[held].argmin()])
            self.codes[slot] = code
            self._sketch[slot] += count
            taken.append(slot)
        return taken

    def _index(self) -> None:
        """Sort the values of each field, its rest last, so that they are found."""
        self.members = np.argsort(self.field, kind="stable")
        self.order = np.lexsort([self.codes, self.field])
        self.ends = np.append(0, np.cumsum(np.bincount(self.field)))

    def state(self, prefix: str) -> Arrays:
        """Return the arrays that ``restore`` needs."""
        return {
            prefix + "codes": self.codes,
            prefix + "field": self.field,
            prefix + "sketch": self._sketch,
        }

    def restore(self, arrays: Arrays, prefix: str) -> None:
        """Restore a state of as many fields; StateError if it cannot be one."""
        c = len(self.ends) - 1
        self.codes, self.field, self._sketch = read(arrays, _VALUES, prefix)
        rests = np.isnan(self.codes)
        expect(rests[:c].all() and not rests[c:].any(), f"the values of {c} fields")
        of_rests = (self.field[:c] == np.arange(c)).all()
        expect(of_rests and (self.field < c).all(), f"the values of {c} fields")
        held = list(zip(self.field[c:].tolist(), self.codes[c:].tolist(), strict=True))
        expect(len(set(held)) == len(held), "the values of a field once")
        few = np.bincount(self.field, minlength=c) <= self.most + 1
        expect(few.all(), "not too many values of a field")
        self._index()


@kernel
def fill_slots(codes: Array, known: Array, order: Array, ends: Array, result: Array) -> None:
    """Fill ``result`` (m, c) with the slots of values (m, c), but where these are missing.

    ``known`` (s,) are the values of slots, ``order`` (s,) those in the order of fields and values,
    each field's rest last, and ``ends`` (c + 1,) where fields begin and end in this order.
    """
    for f in range(codes.shape[1]):
        for i in range(codes.shape[0]):
            low, rest = ends[f], ends[f + 1] - 1
            high = rest
            while low < high:
                middle = (low + high) // 2
                if known[order[middle]] < codes[i, f]:
                    low = middle + 1
                else:
                    high = middle
            if low < rest and known[order[low]] == codes[i, f]:
                result[i, f] = order[low]
            elif codes[i, f] == codes[i, f]:
                result[i, f] = order[rest]
