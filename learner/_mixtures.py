"""Kernels of mixtures of Gaussians that grow by one component at a time, for a block of rows.

``mixtures`` (2 or 4, d, m) gathers one for each variable and row: the logarithm of the largest
weight, the sum of the weights as multiples of it, and, where asked for, mean and variance.
``component`` (2, m) holds mean and variance of what is added to each row.
"""

from __future__ import annotations

from ._density import add_term
from ._jit import kernel
from ._layout import Array
from ._math import choose, exp_nonpositive, fma

LARGEST, TOTAL, MEAN, VARIANCE = range(4)
"""Of ``mixtures``."""

CENTRE, SPREAD = range(2)
"""Of ``component``."""

SMALLEST = -1e300
"""Logarithm of the largest weight before the first: finite, as infinities have no difference."""


@kernel
def add_component(
    v: int, weights: Array, c: int, component: Array, m: int, mixtures: Array
) -> None:
    """Merge a Gaussian of each row, with weights in row ``c``, into the mixtures of a variable."""
    if len(mixtures) > MEAN:
        add_moments(v, weights, c, component, m, mixtures)
        return
    for r in range(m):
        largest, mixtures[TOTAL, v, r] = add_term(
            mixtures[LARGEST, v, r], mixtures[TOTAL, v, r], 1.0, weights[c, r]
        )
        mixtures[LARGEST, v, r] = largest


@kernel
def add_moments(v: int, weights: Array, c: int, component: Array, m: int, mixtures: Array) -> None:
    """Do the same for mixtures with mean and variance."""
    largest, total = mixtures[LARGEST, v], mixtures[TOTAL, v]
    mean, variance = mixtures[MEAN, v], mixtures[VARIANCE, v]
    for r in range(m):
        top, total[r], mean[r], variance[r] = add_gaussian(
            weights[c, r], component[CENTRE, r], component[SPREAD, r],
            largest[r], total[r], mean[r], variance[r],
        )  # fmt: skip
        largest[r] = top


@kernel
def add_gaussian(
    log_weight: float,
    centre: float,
    spread: float,
    largest: float,
    total: float,
    mean: float,
    variance: float,
) -> tuple[float, float, float, float]:
    """Merge one Gaussian into a mixture of weight total e**largest with a mean and a variance."""
    scale = exp_nonpositive(-abs(log_weight - largest))
    ahead = log_weight > largest
    total = choose(ahead, fma(total, scale, 1.0), total + scale)
    share = choose(ahead, 1.0, scale) / total
    shift = centre - mean
    mean += share * shift
    variance += share * (spread - variance + (1.0 - share) * shift * shift)
    return choose(ahead, log_weight, largest), total, mean, variance
