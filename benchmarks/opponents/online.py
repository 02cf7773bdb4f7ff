"""Densities that learn in one pass, mini-batch by mini-batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from benchmarks.crossval import Density
from benchmarks.datasets import Array, Setting

FIRST_ROWS = 100
"""Rows among which a density may look for its start."""


class Online(Protocol):
    """Learns mini-batches (m, d) and gives the density learned so far."""

    def learn(self, rows: Array) -> None: ...

    def density(self) -> Density: ...


@dataclass(frozen=True)
class OnePass:
    """Learns each row once; ``start`` makes a density from the first rows, which it does not learn.

    Mini-batches restart at each fold; they have the data set's size if there is no other.
    """

    start: Callable[[Array], Online]
    batch_size: int | None = None

    def __call__(self, folds: Iterable[Array], setting: Setting) -> Density:
        parts = list(folds)
        model = self.start(parts[0][:FIRST_ROWS])
        for rows in parts:
            self.learn(model, rows, setting)
        return model.density()

    def learn(self, model: Online, rows: Array, setting: Setting) -> None:
        size = self.batch_size or setting.batch_size
        for first in range(0, len(rows), size):
            model.learn(rows[first : first + size])
