"""The true density of generated streams: what the best model could say of their records."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import logsumexp
from scipy.stats import laplace, norm
from scipy.stats import t as student

from .datasets import Array

VALUES = 4_000_000
"""Most numbers of an array: fields of records for each cause."""

IMPOSSIBLE = -1e4
"""Log-density of a value that cannot be; finite, so that sums of several compare."""

GRID = np.sinh(np.linspace(-4.0, 4.0, 401))
"""Values of one cause, up to 27, dense where they are likely."""

COARSE = np.sinh(np.linspace(-3.5, 3.5, 71))
"""Values of each of two causes, up to 17."""


class Oracle:
    """Density of records whose d fields are independent given their causes.

    The integral over the causes is a sum over g of their values.

    Parameters
    ----------
    log_weight
        Log-probability (g,) of the causes, up to a constant.
    log_density
        Takes records (k, 1, d); returns the log-density (k, g, d) of each field given each cause.
    mean, variance
        Moments (g, d) of each field given each cause.
    """

    def __init__(
        self,
        log_weight: Array,
        log_density: Callable[[Array], Array],
        mean: Array,
        variance: Array,
    ) -> None:
        self._log_weight = log_weight - logsumexp(log_weight)
        self._log_density = log_density
        self._mean, self._square = mean, variance + mean**2

    def score_samples(self, X: Array) -> Array:
        """Return the log-density (k,) of records (k, d); NaN is a missing value."""
        parts = [logsumexp(of_fields.sum(axis=2) + self._log_weight, axis=1)
                 for of_fields in self._given_causes(X)]  # fmt: skip
        return np.concatenate(parts)

    def given_others(self, X: Array) -> tuple[Array, Array, Array]:
        """Compare each field (k, d) with the others of its record, as learners do."""
        parts = [self._given_others(of_fields) for of_fields in self._given_causes(X)]
        nats, mean, deviation = map(np.concatenate, zip(*parts, strict=True))
        return np.where(np.isnan(X), np.nan, nats), mean, deviation

    def _given_causes(self, X: Array) -> Iterator[Array]:
        """Yield the log-densities (k, g, d) of fields given causes for some records at a time."""
        n = max(1, VALUES // self._mean.size)
        for start in range(0, max(len(X), 1), n):
            rows = X[start : start + n, None]
            yield np.where(np.isnan(rows), 0.0, self._log_density(rows))

    def _given_others(self, of_fields: Array) -> tuple[Array, Array, Array]:
        joint = of_fields.sum(axis=2, keepdims=True) + self._log_weight[:, None]
        others = joint - of_fields
        log_share = others - logsumexp(others, axis=1, keepdims=True)
        share = np.exp(log_share)
        mean = (share * self._mean).sum(axis=1)
        variance = (share * self._square).sum(axis=1) - mean**2
        return -logsumexp(log_share + of_fields, axis=1), mean, np.sqrt(variance)


def of_heavy(slope: Array, spread: float) -> Oracle:
    """Return the density of ``slope`` (d,) times a cause plus noise, both Student's t of 6."""
    centre = GRID[:, None] * slope
    return Oracle(
        student.logpdf(GRID, 6) + np.log(np.gradient(GRID)),
        lambda x: student.logpdf((x - centre) / spread, 6) - np.log(spread),
        centre,
        np.full_like(centre, spread**2 * student.var(6)),
    )


def of_skewed(slope: Array, spread: float) -> Oracle:
    """Return the density of the exponential of ``slope`` (d,) times a cause plus noise.

    Cause and noise are Gaussian.
    """
    centre = GRID[:, None] * slope

    def log_density(x: Array) -> Array:
        log = np.log(np.where(x > 0, x, 1.0))
        return np.where(x > 0, norm.logpdf(log, centre, spread) - log, IMPOSSIBLE)

    mean = np.exp(centre + spread**2 / 2)
    log_weight = norm.logpdf(GRID) + np.log(np.gradient(GRID))
    return Oracle(log_weight, log_density, mean, mean**2 * np.expm1(spread**2))


def of_bursts(slopes: Array, spread: float) -> Oracle:
    """Return the density of two causes times ``slopes`` (2, d) plus Laplace noise.

    The first cause is Gaussian, the second one Laplace.
    """
    first, second = (each.ravel() for each in np.meshgrid(COARSE, COARSE, indexing="ij"))
    log_step = np.log(np.gradient(COARSE))
    centre = np.column_stack([first, second]) @ slopes
    return Oracle(
        norm.logpdf(first) + laplace.logpdf(second) + np.add.outer(log_step, log_step).ravel(),
        lambda x: -np.abs(x - centre) / spread - np.log(2 * spread),
        centre,
        np.full_like(centre, 2 * spread**2),
    )
