"""Mixtures of Gaussians that grow by one component at a time, for rows side by side.

``mixtures`` (4 d, m) holds one mixture for each of d variables and each row. Its rows are, d each:
the references and the totals of the sums of weights (`log_sums`), means and variances.
"""

from __future__ import annotations

from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import WIDTH, Value, choose, fma, load, store
from faust_oslrau.learner.vector.math import exp_bounded, larger, log_positive, smaller

REFERENCE, TOTAL, MEAN, VARIANCE = range(4)
"""Parts of ``mixtures``, d rows each."""

LEAST_REFERENCE = -1e300
"""The reference of an empty mixture: finite, as the difference of infinities is NaN."""


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
    v: int,
    r: int,
    log_weight: Value,
    own_mean: Value,
    own_variance: Value,
    d: int,
    mixtures: Array,
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
