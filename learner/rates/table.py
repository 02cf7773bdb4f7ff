"""Arrays with a row for each of some subjects."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from faust_oslrau.learner.arrays import Arrays
from faust_oslrau.learner.state_schema import Entry, read


class Table:
    """What is known of subjects.

    ``new`` makes the arrays of so many subjects of which nothing is known; ``schema`` says what
    they are, n being the subjects.
    """

    def __init__(self, new: Callable[[int], Arrays], schema: Mapping[str, Entry]) -> None:
        self.of = new(0)
        self._new, self._schema = new, schema

    def __len__(self) -> int:
        """Return the number of subjects."""
        return len(next(iter(self.of.values())))

    def reserve(self, n: int) -> None:
        """Make room for ``n`` subjects."""
        if n > len(self):
            new = self._new(n - len(self))
            self.of = {name: np.concatenate([rows, new[name]]) for name, rows in self.of.items()}

    def begin(self, subject: int) -> None:
        """Forget what is known of a subject."""
        for name, (begun,) in self._new(1).items():
            self.of[name][subject] = begun

    def state(self) -> Arrays:
        """Return all that ``restore`` needs, as arrays."""
        return {f"rate_{name}": rows for name, rows in self.of.items()}

    def restore(self, arrays: Arrays, n: int) -> None:
        """Restore a state of ``n`` subjects; StateError if it cannot be one."""
        self.of = dict(zip(self._schema, read(arrays, self._schema, "rate_", n=n), strict=True))
