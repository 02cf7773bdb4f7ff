"""Densities that learn in one pass, mini-batch by mini-batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from benchmarks.crossval import Density, Fit
from benchmarks.datasets import Array, Setting

FIRST_ROWS = 100
"""Rows among which a density may look for its start."""


class Online(Protocol):
    """Learns mini-batches (m, d) and gives the density learned so far."""

    def learn(self, rows: Array) -> None: ...

    def density(self) -> Density: ...


Start = Callable[[Array], Online]
"""Makes a density from the first rows (m, d), which it does not learn."""


def one_pass(start: Start, batch_size: int | None = None) -> Fit:
    """Learn each row once, in mini-batches that restart at each fold, of the setting's size."""

    def fit(folds: Iterable[Array], setting: Setting) -> Density:
        parts = list(folds)
        model = start(parts[0][:FIRST_ROWS])
        for rows in parts:
            learn_batches(model, rows, batch_size or setting.batch_size)
        return model.density()

    return fit


def learn_batches(model: Online, rows: Array, batch_size: int) -> None:
    for first in range(0, len(rows), batch_size):
        model.learn(rows[first : first + batch_size])
