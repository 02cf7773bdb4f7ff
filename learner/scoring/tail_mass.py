"""How much of the stream lies further out than a record: a mass, not a density.

The usual records are taken for a few Gaussians, fitted to those that `neighbours` keeps. Further
out than a record lies the part of each Gaussian with a larger Mahalanobis distance. A group of
anomalies may have a Gaussian to itself, and a higher density than any usual record: it still
counts for no more than its share of the records.
"""

from __future__ import annotations

from copy import copy
from typing import ClassVar

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray
from faust_oslrau.learner.density.gaussian_mixture import (
    LEAST_COUNT,
    GaussianMixture,
    enough_components,
)
from faust_oslrau.learner.state_schema import POSITIVE, Entry
from faust_oslrau.learner.stored import Places, Stored
from faust_oslrau.learner.vector.compiler import Array, kernel

from .neighbours import POOL, fill_variances
from .tails import log_mass

MOST = 8
"""Gaussians at the most: enough for a stream's main clusters. With four, groups of anomalies
rank lower."""

ENTRIES = MOST * 32**2
"""Entries of all their covariances together: beyond 32 fields there are fewer Gaussians."""

WIDEST = 128
"""Most fields: the cost of a Gaussian grows with their square."""

LEAST_WEIGHT = 0.05
"""Share of the records from which on a Gaussian counts: a smaller cluster may be anomalies."""

BACKGROUND = 1e-3
"""Weight of one more Gaussian, with the mean and covariance of all together. Far from all clusters
it alone counts, so that a new regime is not as far out as the worst anomaly."""

PRIOR_SHARE, PRIOR_ROWS = 0.1, 4.0
"""Rows that the pooled covariance stands for in each Gaussian's own: a share of all rows, and
some. So a small tight group keeps wide tails."""

REFIT = 4096
"""One more round is tried whenever so many records have come: half of those that the kept rows
stand for. Before there are as many records as rows are kept, the fit starts anew at each boundary.
Each round moves the masses of small clusters, whose records may then be flagged until p-values have
followed. So a round counts only if the stream has changed."""

KEPT = 0.9
"""Share of its weight that a Gaussian keeps at least in one more round, whatever is left of its
records. So the last few regimes are known when they come back, and older ones give way to new ones.
Without this, regimes that came back raised four to six times the nominal number of alarms. 0.8 and
0.95 are as good."""

MOST_DEVIATIONS = 50.0
"""A field further off counts as much as there while Gaussians are fitted."""

FARTHEST = 1e9
"""The same for the mass, so that it stays a number."""

EDGE = 0.01
"""Share of a field's lowest and highest values that its mean and deviation take as less extreme."""


class TailMass(Stored):
    """A few Gaussians, and how much of them lies further out than a record.

    Changes in ``update`` alone, which the scorer calls at learning boundaries. A row's mass has
    the same bits whatever rows it is measured with.

    Attributes
    ----------
    location, scale
        Units of the fields (d,): mean, and one over the standard deviation, 0 where nothing
        varied; those of the last start.
    shrinkage
        That of the mixture.
    mixture
        The Gaussians in these units; None before the first records.
    n
        Records so far.
    """

    schema: ClassVar = {
        "location": Entry(("d",)),
        "scale": Entry(("d",), 0.0),
        "shrinkage": Entry((1,), POSITIVE),
    }
    prefix = "mass_"

    def __init__(self) -> None:
        self.location, self.scale, self.n = np.empty(0), np.empty(0), 0
        self.shrinkage = PRIOR_ROWS
        self.mixture: GaussianMixture | None = None

    @property
    def mean(self) -> FloatArray:
        """Means (k, d) of the Gaussians, none before the first records."""
        return np.empty((0, 0)) if self.mixture is None else self.mixture.gaussians.mean

    def state(self, slots: int | None = None) -> Arrays:
        """Return the arrays that ``restore`` needs."""
        mixture = self.mixture or GaussianMixture(0, len(self.location))
        return super().state() | mixture.state(self.prefix)

    def restore(self, arrays: Arrays, n: int) -> None:
        """Take up a state of ``n`` records; StateError where it cannot be one."""
        self.read_state(arrays)
        mixture = GaussianMixture.of_state(
            arrays, self.prefix, len(self.location), self.shrinkage, K=range(MOST + 1)
        )
        self.n = n
        if len(mixture.count) > 0:
            self._take(mixture)

    def _take(self, mixture: GaussianMixture) -> None:
        """Set the Gaussians, and what the mass needs beside them."""
        self.mixture = mixture
        self._counting = mixture.weight >= min(LEAST_WEIGHT, mixture.weight.max())
        counting = mixture.gaussians.part(np.flatnonzero(self._counting))
        self._all = counting.and_those(mixture.together().gaussians)
        self._weights = np.append(mixture.weight[self._counting], BACKGROUND)

    def log_mass(self, rows: FloatArray) -> FloatArray:
        """Return the log (m,) of the mass further out than the ``rows`` (m, d), at most 0.

        By the observed fields. 0 where there are no Gaussians.
        """
        if self.mixture is None:
            return np.zeros(len(rows))
        distance, _ = self._all.distances(self._standardised(rows, FARTHEST))
        return log_mass(distance, self._weights, rows)

    def add_fields(self, places: Places) -> None:
        """Make room for more fields, which do not vary yet."""
        super().add_fields(places)
        if self.mixture is not None:
            self.mixture.add_fields(places)
            self._take(self.mixture)

    def update(self, rows: FloatArray, n: int) -> bool:
        """Fit to ``rows`` (n, d), which stand for the last of ``n`` records, where it is time.

        Return whether the Gaussians changed.
        """
        before, self.n = self.n, n
        if len(rows) == 0 or rows.shape[1] > WIDEST or n == before:
            return False
        if before < POOL or self.mixture is None:
            self._start(rows)
        elif n // REFIT == before // REFIT:
            return False
        elif self._varies_anew(rows):
            self._start(rows)
        else:
            return self._follow(rows, self.mixture)
        return True

    def _varies_anew(self, rows: FloatArray) -> bool:
        """Whether a field varies now that did not at the last start."""
        still = self.scale == 0.0
        return bool(still.any() and (units(rows[:, still])[1] > 0.0).any())

    def _standardised(self, rows: FloatArray, farthest: float) -> FloatArray:
        """Return rows (m, d) in units of the fields, columns of (d, m), as far as ``farthest``."""
        Z = np.empty(rows.shape[::-1])
        # kernels are compiled for no other layout
        fill_standardised(np.ascontiguousarray(rows), self.location, self.scale, farthest, Z)
        return Z

    def _start(self, rows: FloatArray) -> None:
        """Fit anew, from wide Gaussians at rows far from each other."""
        n, d = rows.shape
        self.location, self.scale = units(rows)
        self.shrinkage = PRIOR_SHARE * n + PRIOR_ROWS
        k = enough_components(n, d, min(MOST, ENTRIES // d**2))
        Z = self._standardised(rows, MOST_DEVIATIONS)
        rng = np.random.default_rng(4)  # of seeds 0 to 4, which find .35 to .48 of repeated spikes
        self._take(GaussianMixture.of_wide_components(Z, k, rng, self.shrinkage).fit(Z))

    def _follow(self, rows: FloatArray, before: GaussianMixture) -> bool:
        """Do one more round of expectation-maximisation, unless it tells no more than chance.

        Return whether it does. Of rows from the same distribution, a fit to them raises the
        log-likelihood by about the number of its parameters (Akaike 1974); thrice as much is more
        than chance. Each Gaussian that counts keeps at least the share ``KEPT`` of its weight:
        where it has fewer of the rows, the rest of that share stays as the Gaussian was.
        """
        (n, d), Z = rows.shape, self._standardised(rows, MOST_DEVIATIONS)
        log_density, shares = before.log_density(Z)
        least = KEPT * n * np.where(self._counting, before.weight, 0.0)
        absent = np.maximum(least - shares.sum(axis=0), 0.0)
        after = copy(before)
        after.learn(Z, shares, absent / np.maximum(before.count, LEAST_COUNT))
        n_parameters = len(absent) * (1 + d + d * (d + 1) // 2)
        if after.log_density(Z)[0].sum() < log_density.sum() + 3 * n_parameters:
            return False
        self._take(after)
        return True


@kernel
def fill_standardised(
    rows: Array, location: Array, scale: Array, farthest: float, Z: Array
) -> None:
    """Fill ``Z`` (d, m) with rows (m, d) in these units, at most ``farthest`` from 0."""
    m, d = rows.shape
    for v in range(d):
        for r in range(m):
            z = (rows[r, v] - location[v]) * scale[v]
            if z > farthest:
                z = farthest
            elif z < -farthest:
                z = -farthest
            Z[v, r] = z


def units(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and one over the standard deviation (d,) of rows (n, d), without wild values.

    0 where nothing varies.
    """
    rows, d = np.ascontiguousarray(rows), rows.shape[1]  # kernels are compiled for no other layout
    ordered = np.sort(rows, axis=0)  # missing ones last
    seen = np.count_nonzero(~np.isnan(rows), axis=0)
    edge, column = (EDGE * seen).astype(int) + (seen > 1), np.arange(d)
    low, high = ordered[edge, column], ordered[np.maximum(seen - 1 - edge, 0), column]
    inner, (variance, whole) = np.clip(rows, low, np.maximum(low, high)), np.empty((2, d))
    fill_variances(inner, variance)
    fill_variances(rows, whole)
    variance = np.where(variance > 0.0, variance, whole)
    scale = np.zeros(d)
    np.divide(1.0, np.sqrt(variance), out=scale, where=variance > 0.0)
    return np.nansum(inner / np.maximum(seen, 1), axis=0), scale
