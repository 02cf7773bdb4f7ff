"""How much of the stream lies further out than a record: a mass, not a density.

The usual records are taken for a few Gaussians, fitted to those that `neighbours` keeps. Further
out than a record lies the part of each Gaussian with a larger Mahalanobis distance. A group of
anomalies may have a Gaussian to itself, and a higher density than any usual record: it still
counts for no more than its share of the records.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.errors import StateError
from faust_oslrau.learner.state_schema import POSITIVE, Arrays, Entry, read
from faust_oslrau.learner.vector.lanes import padded

from .mixture_fit import fill_moments, fill_shares, spread_out, with_background
from .nearest import fill_variances
from .neighbours import GOLDEN
from .tails import fill_distances, fill_log_mass, whitenings

FloatArray = NDArray[np.float64]


MOST = 8
"""Gaussians at the most: enough for a stream's main clusters. With four, groups of anomalies
rank lower."""


ENTRIES = MOST * 32**2
"""Entries of all their covariances together: beyond 32 fields there are fewer Gaussians."""


WIDEST = 128
"""Most fields: the cost of a Gaussian grows with their square."""


ROWS_BESIDE_FIELDS = 8
"""A Gaussian needs as many rows as there are fields, and so many more."""


LEAST_WEIGHT = 0.05
"""Share of the records from which on a Gaussian counts: a smaller cluster may be anomalies."""


BACKGROUND = 1e-3
"""Weight of one more Gaussian, with the mean and covariance of all together. Far from all clusters
it alone counts, so that a new regime is not as far out as the worst anomaly."""


PRIOR_SHARE, PRIOR_ROWS = 0.1, 4.0
"""Rows that the pooled covariance stands for in each Gaussian's own: a share of all rows, and
some. So a small tight group keeps wide tails."""


DIAGONAL = 0.1
"""Share of the diagonal in the pooled covariance, which few rows tell better than the rest."""


SMALLEST_VARIANCE = 1e-6
"""Added to the variances, so that no covariance is singular; in units of the fields' own."""


SWEEPS = 8
"""Rounds of expectation-maximisation after a start. With four, groups rank lower."""


YOUNG = 1024
"""Records up to which the fit starts anew at each boundary; as many as it is made of."""


REFIT = 4096
"""Later, one more round is tried whenever so many records have come: half of those that the kept
rows stand for. Each round moves the masses of small clusters, whose records may then be flagged
until p-values have followed. So a round counts only if the stream has changed."""


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


TURNS = np.array([(i + 1) * GOLDEN % 2**64 / 2**64 for i in range(MOST)])
"""Numbers in [0, 1), spread evenly, where a fit would draw at random."""


_GAUSSIANS = {
    "location": Entry(("d",)),
    "scale": Entry(("d",), 0.0),
    "weight": Entry(("k",), POSITIVE),
    "mean": Entry(("k", "d")),
    "covariance": Entry(("k", "d", "d")),
}


class TailMass:
    """A few Gaussians, and how much of them lies further out than a record.

    Changes in ``update`` alone, which the scorer calls at learning boundaries. A row's mass has
    the same bits whatever rows it is measured with.

    Attributes
    ----------
    location, scale
        Units of the fields (d,): mean, and one over the standard deviation, 0 where nothing
        varied; those of the last start.
    weight, mean, covariance
        The Gaussians (k,), (k, d), (k, d, d) in these units; none before the first records.
    n
        Records so far.
    """

    def __init__(self) -> None:
        self.location, self.scale, self.weight = np.empty(0), np.empty(0), np.empty(0)
        self.mean, self.covariance = np.empty((0, 0)), np.empty((0, 0, 0))
        self.n = 0

    def state(self) -> Arrays:
        """Return the arrays that ``restore`` needs."""
        return {f"mass_{name}": getattr(self, name) for name in _GAUSSIANS}

    def restore(self, arrays: Arrays, n: int) -> None:
        """Take up a state of ``n`` records; StateError where it cannot be one."""
        self.location, self.scale, self.weight, self.mean, self.covariance = read(
            arrays, _GAUSSIANS, "mass_", k=range(MOST + 1)
        )
        self.n = n
        if len(self.weight) > 0 and not self._prepare():
            raise StateError("state: expected Gaussians with positive definite covariances")

    def log_mass(self, rows: FloatArray) -> FloatArray:
        """Return the log (m,) of the mass further out than the ``rows`` (m, d), at most 0.

        By the observed fields. 0 where there are no Gaussians.
        """
        m, d = rows.shape
        k = len(self.weight)
        if k == 0:
            return np.zeros(m)
        width = padded(max(m, 2))
        Z, fields = np.zeros((d, width)), np.full((1, width), float(d))
        self._standardise(rows, FARTHEST, Z[:, :m])
        n_missing = np.isnan(rows).sum(axis=1)
        fields[0, :m] -= np.minimum(n_missing, d - 1)
        distances, result = np.empty((k + 1, width)), np.empty((1, width))
        fill_distances(Z, self._means, self._whitenings, n_missing, distances)
        fill_log_mass(distances, self._weights, fields, result)
        return np.minimum(result[0, :m], 0.0)

    def update(self, rows: FloatArray, n: int) -> bool:
        """Fit to ``rows`` (n, d), which stand for the last of ``n`` records, where it is time.

        Return whether the Gaussians changed.
        """
        before, self.n = self.n, n
        if len(rows) == 0 or rows.shape[1] > WIDEST or n == before:
            return False
        if before < YOUNG or len(self.weight) == 0:
            self._start(rows)
        elif n // REFIT == before // REFIT:
            return False
        elif self._varies_anew(rows):
            self._start(rows)
        else:
            return self._follow(rows)
        return True

    def _varies_anew(self, rows: FloatArray) -> bool:
        """Whether a field varies now that did not at the last start."""
        return bool(((self.scale == 0.0) & (units(rows)[1] > 0.0)).any())

    def _standardise(self, rows: FloatArray, farthest: float, Z: FloatArray) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # 1e308 is as far as ``farthest``
            np.subtract(rows.T, self.location[:, None], out=Z)
            np.multiply(Z, self.scale[:, None], out=Z)
        np.clip(Z, -farthest, farthest, out=Z)

    def _start(self, rows: FloatArray) -> None:
        """Fit anew, from wide Gaussians at rows far from each other."""
        n, d = rows.shape
        self.location, self.scale = units(rows)
        k = max(1, min(MOST, ENTRIES // d**2, n // (d + ROWS_BESIDE_FIELDS)))
        Z = np.empty((d, n))
        self._standardise(rows, MOST_DEVIATIONS, Z)
        self.mean = np.nan_to_num(Z.T[spread_out(Z, k, TURNS)])
        self.weight = np.full(k, 1.0 / k)
        self.covariance = np.tile(np.eye(d) / np.sqrt(k), (k, 1, 1))
        self._prepare()
        for _ in range(SWEEPS):
            self._improve(rows)

    def _follow(self, rows: FloatArray) -> bool:
        """Do one more round, and undo it unless it tells more than chance. Return whether it does.

        Of rows from the same distribution, a fit to them raises the log-likelihood by about the
        number of its parameters (Akaike 1974); twice as much is more than chance.
        """
        weight, mean, covariance = self.weight, self.mean.copy(), self.covariance
        before, d = self._log_likelihood(rows), rows.shape[1]
        self._improve(rows, KEPT)
        n_parameters = len(weight) * (1 + d + d * (d + 1) // 2)
        if self._log_likelihood(rows) >= before + 2 * n_parameters:
            return True
        self.weight, self.mean, self.covariance = weight, mean, covariance
        self._prepare()
        return False

    def _log_likelihood(self, rows: FloatArray) -> float:
        """Return the sum of the rows' log-densities in nats, but for a constant."""
        n, k = len(rows), len(self.weight)
        diagonals = np.diagonal(self._whitenings[:k], axis1=1, axis2=2)
        scales = np.log(self.weight) + np.log(diagonals).sum(axis=1)
        nats = scales[:, None] - 0.5 * self._measured(rows)[1][:, :n]
        return float(np.logaddexp.reduce(nats, axis=0).sum())

    def _improve(self, rows: FloatArray, kept: float = 0.0) -> None:
        """Do one round of expectation-maximisation (Dempster, Laird and Rubin 1977).

        Each Gaussian that counts keeps at least the share ``kept`` of its weight. Where it has
        fewer of the rows, the rest of that share stays as the Gaussian was.
        """
        n, k = len(rows), len(self.weight)
        counts, mean, covariance = self._fitted(rows)
        least = kept * n * np.where(self._weights[:k] > 0.0, self.weight, 0.0)
        absent = np.maximum(least - counts, 0.0)
        old = absent / (counts + absent + 0.5)
        self.covariance = _mixed(old, self.mean, self.covariance, mean, covariance)
        self.mean = mean + old[:, None] * (self.mean - mean)
        self.weight = (counts + absent + 0.5) / (n + absent.sum() + 0.5 * k)
        self._prepare()

    def _fitted(self, rows: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return how many of the rows each Gaussian has (k,), their means and covariances."""
        (n, d), k = rows.shape, len(self.weight)
        Z, distances = self._measured(rows)
        shares, scatters, mean = np.empty((k, n)), np.empty((k, d, d)), self.mean.copy()
        fill_shares(distances, self.weight, self._whitenings[:k], shares)
        fill_moments(np.ascontiguousarray(Z[:, :n].T), shares, mean, scatters)
        pooled = scatters.sum(axis=0) / n
        pooled = (1.0 - DIAGONAL) * pooled + DIAGONAL * np.diag(np.diagonal(pooled))
        counts, prior = shares.sum(axis=1), PRIOR_SHARE * n + PRIOR_ROWS
        return counts, mean, (scatters + prior * pooled) / (counts + prior)[:, None, None]

    def _measured(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the rows (d, >= n) in the fit's units, and squared distances (k, >= n) from each.

        Both are padded to whole lanes.
        """
        (n, d), k = rows.shape, len(self.weight)
        Z, distances = np.zeros((d, padded(max(n, 2)))), np.empty((k, padded(max(n, 2))))
        self._standardise(rows, MOST_DEVIATIONS, Z[:, :n])
        n_missing = np.isnan(rows).sum(axis=1)
        fill_distances(Z, self.mean, self._whitenings[:k], n_missing, distances)
        return Z, distances

    def _prepare(self) -> bool:
        """Compute what the mass needs; False if a covariance is not positive definite."""
        means, covariances = with_background(self.weight, self.mean, self.covariance)
        usual = self.weight >= min(LEAST_WEIGHT, self.weight.max())
        self._weights = np.append(np.where(usual, self.weight, 0.0), BACKGROUND)
        self._means, self._whitenings = means, whitenings(covariances, SMALLEST_VARIANCE)
        return len(self._whitenings) == len(means)


def _mixed(
    old: FloatArray,
    old_mean: FloatArray,
    old_covariance: FloatArray,
    mean: FloatArray,
    covariance: FloatArray,
) -> FloatArray:
    """Return the covariances (k, d, d) of Gaussians that are ``old`` (k,) ones by that share."""
    gap, share = mean - old_mean, old[:, None, None]
    between = share * (1.0 - share) * gap[:, :, None] * gap[:, None, :]
    return np.asarray(covariance + share * (old_covariance - covariance) + between)


def units(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and one over the standard deviation (d,) of rows (n, d), without wild values.

    0 where nothing varies.
    """
    d = rows.shape[1]
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
    return np.nan_to_num(inner / np.maximum(seen, 1)).sum(axis=0), scale
