"""Mixtures: the logarithm of a sum of densities, the parts' shares in it, and moments.

A growing mixture takes one Gaussian after another, for rows side by side: ``mixtures`` (4 d, m)
holds one for each of d variables and each row. Its rows are, d each: the references and the totals
of the sums of weights (`log_sums`), means and variances.
"""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import WIDTH, Value, choose, fma, load, spread, store
from faust_oslrau.learner.vector.math import exp_bounded, larger, log_positive, smaller

REFERENCE, TOTAL, MEAN, VARIANCE = range(4)
"""Parts of ``mixtures``, d rows each."""

LEAST_REFERENCE = -1e300
"""The reference of an empty mixture: finite, as the difference of infinities is NaN."""


def log_sums(shares: FloatArray) -> FloatArray:
    """Logarithm of the sum of exponentials of each row, which become shares of it."""
    result, logs = np.empty(len(shares)), np.ascontiguousarray(shares.T)
    mix(np.zeros(logs.shape), logs, np.zeros(len(logs)), result, shares)
    return result


def total_moments(
    share: FloatArray, means: FloatArray, covariances: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean (d,) and covariance (d, d) of a mixture whose parts have these, (K, d) and (K, d, d)."""
    mean = share @ means
    covariance = np.zeros(covariances.shape[1:])
    for p, centre, own in zip(share, means, covariances, strict=True):
        covariance += p * (own + np.outer(centre - mean, centre - mean))
    return np.asarray(mean, np.float64), covariance


def mix_given_others(
    others: FloatArray, means: FloatArray, deviations: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what a mixture says of each variable, from what its parts say, (K, ...) each.

    The log-density of the other variables, to which ``others`` adds the logarithms of the parts'
    weights; then mean and deviation given them.
    """
    total = np.logaddexp.reduce(others)
    share = np.exp(others - total)
    mean = _added(share * means)
    variance = _added(share * (deviations**2 + (means - mean) ** 2))
    return total, mean, np.sqrt(variance)


def _added(parts: FloatArray) -> FloatArray:
    """Return the sum (...) of parts (K, ...), each after the one before.

    numpy adds those of a single value in another order.
    """
    return np.asarray(np.add.accumulate(parts)[-1])


@kernel
def share_out(logs: Array, n: int, start: int, result: Array, shares: Array) -> None:
    """Sum up the exponentials of ``n`` columns of ``logs`` (K + 1, WIDTH).

    Fills ``result`` (m,) with the logarithms of the sums and ``shares`` (m, K) from row ``start``
    on. The last row of ``logs`` takes the former.
    """
    last = len(logs) - 1
    largest, total = load(logs, 0, 0), spread(0.0)
    for k in range(1, last):
        largest = larger(load(logs, k, 0), largest)
    for k in range(last):
        term = exp_bounded(load(logs, k, 0) - largest)
        total = total + term
        store(logs, k, 0, term)
    for k in range(last):
        store(logs, k, 0, load(logs, k, 0) / total)
    store(logs, last, 0, largest + log_positive(total))
    for i in range(n):
        result[start + i] = logs[last, i]
        for k in range(last):
            shares[start + i, k] = logs[k, i]


@kernel
def mix(distance: Array, norm: Array, log_weight: Array, result: Array, shares: Array) -> None:
    """Fill ``result`` (m,) with log-densities of a mixture, ``shares`` (m, K) with posterior ones.

    ``distance`` and ``norm`` (K, m) are those that `distances` fills.
    """
    K, m = distance.shape
    logs = np.zeros((K + 1, WIDTH))
    for start in range(0, m, WIDTH):
        n = min(WIDTH, m - start)
        for k in range(K):
            for i in range(n):
                log_density = norm[k, start + i] - 0.5 * distance[k, start + i]
                logs[k, i] = log_density + log_weight[k]
        share_out(logs, n, start, result, shares)


@kernel
def clear(mixtures: Array, d: int) -> None:
    """Empty all mixtures."""
    mixtures[:d] = LEAST_REFERENCE
    mixtures[d:] = 0.0


@kernel
def close(mixtures: Array, d: int, m: int) -> None:
    """Make references the logarithms of the sums of weights, for the first ``m`` rows."""
    for v in range(d):
        for r in range(0, m, WIDTH):
            total = log_positive(load(mixtures, TOTAL * d + v, r))
            store(mixtures, v, r, load(mixtures, v, r) + total)


@kernel
def add_component(
    v: int, r: int, log_weight: Value, own_mean: Value, own_variance: Value, d: int, mixtures: Array
) -> None:
    """Add one Gaussian to the mixture of variable ``v``, for the lane of rows from ``r`` on.

    ``own_mean`` and ``own_variance`` are those of the Gaussian.
    """
    reference, total = load(mixtures, v, r), load(mixtures, TOTAL * d + v, r)
    mean, variance = load(mixtures, MEAN * d + v, r), load(mixtures, VARIANCE * d + v, r)
    top = larger(log_weight, reference)
    scale = exp_bounded(smaller(log_weight, reference) - top)
    ahead = log_weight > reference
    total = choose(ahead, fma(total, scale, 1.0), total + scale)
    share = choose(ahead, 1.0, scale) / total
    shift = own_mean - mean
    spread = own_variance - variance + (1.0 - share) * shift * shift
    store(mixtures, v, r, top)
    store(mixtures, TOTAL * d + v, r, total)
    store(mixtures, MEAN * d + v, r, mean + share * shift)
    store(mixtures, VARIANCE * d + v, r, variance + share * spread)
