"""What the first record of an entity is like, of which nothing is known yet.

The network learns records of known entities, each around its own level. The first record of an
entity lies around the level of all, as far off as entities differ: where they differ by factors in
scale, or have several states each, that is another distribution than one of known entities.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.errors import StateError
from faust_oslrau.learner.state_schema import Arrays, Entry, counts, read

from .habit_kernels import Predicted
from .kinds import Kinds

FloatArray = NDArray[np.float64]
Parts = tuple[FloatArray, FloatArray, FloatArray]

RECORDS = 4
"""Records of an entity that are learned: each of them could have been its first one."""

ENOUGH = 8192
"""Records learned from which on only the very first ones of entities are."""

AT_ONCE = 256
"""Records that are learned together: refitting the kinds for a few costs too much."""

MEMORY = 4000.0
"""First records by which the kinds' weight is learned."""

PRIOR_RECORDS = 2.0
"""Records that say that the kinds, and all other densities, are as good as each other."""


_ROWS = Entry(("n", "d"), nan=True)
_FIRST = {"counts": Entry((2, 2), 0.0), "rows": _ROWS, "at": counts("n")}
_WAITING = {"waiting": _ROWS}


class FirstRecords:
    """Kinds of first records, in units of a new entity, and how much they count.

    The kinds are mixed with all other densities for the first record of an entity, and only for it.
    """

    def __init__(self) -> None:
        self._kinds = Kinds()
        self._parts: Parts | None = None  # until they are asked for
        self._counts = np.zeros(2)  # first records that all others predicted, and the kinds
        self._votes = np.zeros(2)
        self._rows, self._at = np.empty((0, 0)), np.empty(0, np.int64)
        self._waiting = np.empty((0, 0))

    @property
    def weight(self) -> float:
        """The weight of the kinds for a first record; 0 before there are any."""
        if self._kinds.mixture is None:
            return 0.0
        others, kinds = self._counts.tolist()
        return float((kinds + PRIOR_RECORDS) / (others + kinds + 2.0 * PRIOR_RECORDS))

    def parts(self, d: int) -> Parts:
        """Return weights (K,), means (K, d) and covariances (K, d (d + 1) / 2) of the kinds."""
        mixture = self._kinds.mixture
        if mixture is None:
            return np.empty(0), np.empty((0, d)), np.empty((0, d * (d + 1) // 2))
        if self._parts is None:
            covariance, _ = self._kinds.covariances()
            self._parts = mixture.weight, mixture.gaussians.mean, covariance
        return self._parts

    def mix(
        self, rows: FloatArray, which: NDArray[np.int64], network: FloatArray, found: Predicted
    ) -> None:
        """Mix the kinds with what was ``found`` for rows (m, d), those of number ``which`` (k,).

        These are first records. ``network`` (m,) has the network's log-densities of all rows.
        """
        mixture, weight = self._kinds.mixture, self.weight
        if mixture is None or len(which) == 0:
            return
        kinds, _ = mixture.log_density(np.ascontiguousarray(rows[which].T))
        kinds += math.log(weight)
        log_rest = math.log1p(-weight)
        share, others = log_rest + found.log_share[which], log_rest + found.log_others[which]
        found.first[which] = weight
        found.weight[which] *= 1.0 - weight
        found.log_share[which], found.log_others[which] = share, np.logaddexp(others, kinds)
        others = np.logaddexp(others, share + network[which])
        by_kinds = np.exp(kinds - np.logaddexp(others, kinds))
        votes = np.column_stack([1.0 - by_kinds, by_kinds])
        # One by one: sums of parts would have other bits if the stream is cut elsewhere.
        self._votes = np.vstack([self._votes, votes]).cumsum(axis=0)[-1]

    @property
    def wanted(self) -> int:
        """The first records of each entity that are learned."""
        return RECORDS if self._kinds.n < ENOUGH else 1

    def remember(self, at: NDArray[np.int64], rows: FloatArray) -> None:
        """Keep rows (k, d) in units of a new entity, until the next boundary.

        They are those of numbers ``at`` (k,) since the last one.
        """
        self._at = np.concatenate([self._at, at])
        self._rows = np.concatenate([self._rows.reshape(-1, rows.shape[1]), rows])

    def learn(self, usual: NDArray[np.bool_]) -> None:
        """Learn at a boundary the rows of the batch that were kept and are ``usual`` (m,)."""
        if len(self._at) > 0:  # none are kept while rows are learned anew
            rows = self._rows[usual[self._at]]
            self._waiting = np.concatenate([self._waiting.reshape(-1, rows.shape[1]), rows])
        self._counts = self._counts * np.exp(-self._votes.sum() / MEMORY) + self._votes
        if len(self._waiting) >= AT_ONCE:
            mixture, shares = self._kinds.mixture, np.empty((0, 0))
            if mixture is not None:
                shares = mixture.log_density(np.ascontiguousarray(self._waiting.T))[1]
            self._kinds.learn(self._waiting, shares)
            self._waiting, self._parts = self._waiting[:0], None

    def end_batch(self) -> None:
        """Forget the rows since the last boundary, learned or not."""
        self._votes, self._rows, self._at = np.zeros(2), self._rows[:0], self._at[:0]

    def state(self) -> Arrays:
        """Return all that ``restore`` needs, as arrays."""
        return {
            "first_counts": np.stack([self._counts, self._votes]),
            "first_rows": self._rows,
            "first_at": self._at,
            "first_waiting": self._waiting,
            **{f"first_{name}": array for name, array in self._kinds.state().items()},
        }

    def restore(self, arrays: Arrays, d: int, scored: int) -> None:
        """Restore a state; StateError if it cannot be one.

        Of rows with ``d`` fields, ``scored`` of which wait for the next boundary.
        """
        if "first_counts" not in arrays:
            return  # states of earlier versions have none: they are learned from now on
        own = {name.removeprefix("first_"): array for name, array in arrays.items()}
        self._kinds.restore({name: own[name] for name in self._kinds.state()}, d)
        (self._counts, self._votes), self._rows, self._at = read(own, _FIRST, d=(0, d))
        (self._waiting,) = read(own, _WAITING, n=range(AT_ONCE), d=(0, d))
        if any(len(rows) > 0 and rows.shape[1] != d for rows in (self._rows, self._waiting)):
            raise StateError("state: expected the first records of entities")
        if (self._at >= scored).any():
            raise StateError("state: expected first records among those that wait")
