"""Kinds of records that all entities share: Gaussians over rows in units of their entities."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray
from faust_oslrau.learner.density.gaussian_mixture import (
    FARTHEST,
    GaussianMixture,
    enough_components,
)
from faust_oslrau.learner.errors import StateError
from faust_oslrau.learner.state_schema import Entry, counts, read
from faust_oslrau.learner.stored import Places

MOST = 12
"""Kinds at the most: each costs d (d + 1) / 2 multiplications a record."""

STARTS = (240, 496, 1008)
"""Records after which the kinds are found anew, in all records so far."""

MEMORY = 4000.0
"""Records that what all entities share remembers: the kinds, how much they count beside the other
densities, and the usual scores of each age."""

_ROUNDING = 1e-6

_LARGEST = 1e9
"""More than any count, sum, sum of squares or mean that is remembered. What is expected of missing
values is learned, too, and may be further out than those that are observed."""


class Kinds:
    """A mixture of Gaussians with full covariances, learned at boundaries from usual rows.

    Attributes
    ----------
    mixture
        The kinds; None before the first start.
    n
        Records so far.
    """

    def __init__(self) -> None:
        self.mixture: GaussianMixture | None = None
        self.n = 0
        self._first = np.empty((0, 0))

    def learn(self, rows: FloatArray, shares: FloatArray) -> bool:
        """Learn rows (m, d) by their ``shares`` (m, K) of each kind; say if the kinds are new."""
        before, self.n = self.n, self.n + len(rows)
        rows = np.clip(rows, -FARTHEST, FARTHEST)
        if before < STARTS[-1]:
            self._first = np.concatenate([self._first.reshape(-1, rows.shape[1]), rows])
            if any(before < start <= self.n for start in STARTS):
                self._start()
                return True
        if self.mixture is not None and len(rows) > 0:
            Z = np.ascontiguousarray(rows.T)
            self.mixture.learn(Z, shares, float(np.exp(-len(rows) / MEMORY)))
        return False

    def _start(self) -> None:
        Z, k = np.ascontiguousarray(self._first.T), enough_components(*self._first.shape, MOST)
        self.mixture = GaussianMixture.of_seeds(Z, k, np.random.default_rng(0)).fit(Z)
        if self.n >= STARTS[-1]:
            self._first = np.empty((0, 0))

    def add_fields(self, places: Places) -> None:
        """Make room for more fields, which rows so far lack."""
        self._first = places.widened(self._first, 1)
        if self.mixture is not None:
            self.mixture.add_fields(places)

    def state(self) -> Arrays:
        """Return all that ``restore`` needs, as arrays."""
        mixture = self.mixture or GaussianMixture(0, self._first.shape[1])
        return {
            "kinds_first": self._first,
            **mixture.state("kinds_"),
            "kinds_records": np.array([self.n]),
        }

    def restore(self, arrays: Arrays, d: int) -> None:
        """Restore a state of rows with ``d`` fields; StateError if it cannot be one."""
        (self.n,) = read(arrays, {"kinds_records": counts(1)})
        waiting = self.n if 0 < self.n < STARTS[-1] else 0
        (self._first,) = read(
            arrays,
            {"kinds_first": Entry(("n", "d"), -FARTHEST, FARTHEST, nan=True)},
            n=waiting,
            d=d if waiting else (0, d),
        )
        if self.n >= STARTS[0]:
            self.mixture = GaussianMixture.of_state(arrays, "kinds_", d, K=range(1, MOST + 1))
            mixture = self.mixture
            of_rows = mixture.count, mixture.sums, mixture.squares, mixture.gaussians.mean
            is_too_large = max(np.abs(each).max() for each in of_rows) > _LARGEST
            if is_too_large or not _is_of_rows(mixture):
                raise StateError("state: expected kinds that are made of rows")


def _is_of_rows(mixture: GaussianMixture) -> bool:
    """Tell whether squares and sums are those of rows, by the inequality of Cauchy and Schwarz."""
    diagonal = np.diagonal(mixture.squares, axis1=1, axis2=2) * mixture.count[:, None]
    return bool((diagonal >= mixture.sums**2 * (1.0 - _ROUNDING)).all())
