"""Kernels of each entity's level and scale in each field, shrunk to what entities are like.

Per field and entity there are three statistics: the mean of the records, and with half the digits
their number and the sum of squares around the mean. Those of an entity are context: a record is
predicted from the ones before it, then it changes them, learned or not. What entities are like
(`population`) changes at learning boundaries only.

With s2 = (nu tau2 + squares) / (nu + n - 1) and k = s2 / b0, the value of an entity's next record
has Student's t with location (k m0 + n mean) / (k + n), scale sqrt(s2 (1 + 1 / (k + n))) and about
nu + n - 1 degrees of freedom: the posterior predictive of a Gaussian whose mean has the prior
N(m0, b0) and whose variance has a scaled inverse chi-square prior.

A value is then taken to units in which it is Gaussian, by Wallace's transform (1959, "Bounds on
normal approximations to Student's and the chi-square distributions"): the fewer records of its
entity, the fewer degrees of freedom. So a network that learns the results need not know how old an
entity is. Any increasing map would keep densities exact: the slope of this one is used, not an
approximation.
"""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.vector.blocks import row_sums
from faust_oslrau.learner.vector.compiler import Array, kernel

COUNT, SQUARES = range(2)
"""Statistics of a field of an entity, beside the mean."""

M0, B0, NU, TAU2, MEMORY = range(5)
"""Rows of what entities are like: mean and variance of their levels, degrees of freedom and scale
of the prior of their variances, and the records that a level remembers."""

LOCATION, SCALE, FREEDOM = range(3)
"""Units of a field of a record, as predicted."""

LONGEST = 1000.0
"""Records that an entity's statistics remember, so that its scale and its habits can change."""

KEEP = math.exp(-1.0 / LONGEST)
"""Share of them that is left after another record."""

YOUNG = 4.0
"""Records up to which an entity's level may move far at once: that of one far from all others would
follow slowly, and its spread be too large."""

FARTHEST_YOUNG, FARTHEST = 20.0, 6.0
"""Scales by which one record may lie off at the most: an outlier moves level and scale as one of so
many scales would."""

LARGEST_VALUE = 1e15
"""Values in units of the stream are clipped here, so that sums of squares stay finite."""

LARGEST_EXPONENT = 600.0
"""Exponent at which the way back ends: no expected value is as far from its level."""


@kernel
def to_gaussian(z: float, freedom: float) -> tuple[float, float]:
    """Return u(z) of a value ``z`` of Student's t, and log u'(z).

    Wallace's ``factor`` makes the centre of the transform as steep as it should be.
    """
    square, factor = z * z / freedom, (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0)
    logarithm = math.log1p(square)
    ratio = square / logarithm if square > 0.0 else 1.0
    slope = math.log(factor * math.sqrt(ratio) / (1.0 + square))
    return math.copysign(factor * math.sqrt(freedom * logarithm), z), slope


@kernel
def predict(mean: float, own: Array, population: Array, v: int, units: Array) -> None:
    """Fill ``units`` (3,) with location, scale and degrees of freedom of the next value.

    Of field ``v``, from the entity's mean and statistics (2,) of that field.
    """
    count = float(own[COUNT])
    n = min(count, population[MEMORY, v])
    freedom = population[NU, v] + max(count - 1.0, 0.0)
    variance = (population[NU, v] * population[TAU2, v] + float(own[SQUARES])) / freedom
    shrinkage = variance / population[B0, v]
    spread = 1.0 / (shrinkage + n)
    units[LOCATION] = (shrinkage * population[M0, v] + n * mean) * spread
    units[SCALE] = math.sqrt(variance * (1.0 + spread))
    # how much the scale's logarithm follows the logarithm of the entity's own, which alone is t
    part = (1.0 + n * spread * spread) / (1.0 + spread)
    units[FREEDOM] = freedom / (part * part)


@kernel
def learn(mean: float, own: Array, population: Array, v: int, y: float, scale: float) -> float:
    """Add a value ``y`` of field ``v`` to an entity's statistics (2,); return its new mean."""
    count = float(own[COUNT])
    n = min(count, population[MEMORY, v])
    middle = population[M0, v] if count == 0.0 else mean
    farthest = (FARTHEST_YOUNG if count < YOUNG else FARTHEST) * scale
    step = min(max(y - middle, -farthest), farthest)
    own[SQUARES] = KEEP * float(own[SQUARES]) + step * step * n / (n + 1.0)
    own[COUNT] = KEEP * count + 1.0
    return float(middle + step / (n + 1.0))


@kernel
def standardise(
    X: Array,
    slots: Array,
    fresh: Array,
    means: Array,
    statistics: Array,
    population: Array,
    reference: Array,
    U: Array,
    jacobian: Array,
    units: Array,
) -> None:
    """Fill ``U`` (m, d) with rows in Gaussian units of their entities, and learn them one by one.

    ``slots`` (m,) are the entities of the rows ``X`` (m, d), ``fresh`` (m,) says which begin anew
    there. ``means`` (slots, d) and ``statistics`` (slots, d, 2) are the entities' own,
    ``population`` (5, d) is what entities are like, all in units of the stream: ``reference``
    (2, d) has their location and scale. Fills ``jacobian`` (m,) with log |dU/dX| of the observed
    fields, ``units`` (m, d, 3) with the prediction.
    """
    for r in range(X.shape[0]):
        mean, own = means[slots[r]], statistics[slots[r]]
        if fresh[r]:
            mean[:], own[:] = 0.0, 0.0
        total = 0.0
        for v in range(X.shape[1]):
            predict(mean[v], own[v], population, v, units[r, v])
            y = (X[r, v] - reference[0, v]) / reference[1, v]
            U[r, v] = np.nan
            if y == y:
                y = min(max(y, -LARGEST_VALUE), LARGEST_VALUE)
                scale = units[r, v, SCALE]
                z = (y - units[r, v, LOCATION]) / scale
                U[r, v], slope = to_gaussian(z, units[r, v, FREEDOM])
                total += slope - math.log(scale * reference[1, v])
                mean[v] = learn(mean[v], own[v], population, v, y, scale)
        jacobian[r] = total


def in_own_units(
    X: FloatArray, units: FloatArray, reference: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return values (m, d) in Gaussian ``units`` (m, d, 3) of their entities, and log |dU/dX| (m,).

    As `standardise` does, but nothing is learned of them.
    """
    location, scale, freedom = units[..., LOCATION], units[..., SCALE], units[..., FREEDOM]
    factor = (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0)
    y = np.clip((X - reference[0]) / reference[1], -LARGEST_VALUE, LARGEST_VALUE)
    z = (y - location) / scale
    square = z * z / freedom
    logarithm = np.log1p(square)
    ratio = np.divide(square, logarithm, out=np.ones_like(square), where=square > 0.0)
    slope = np.log(factor * np.sqrt(ratio) / (1.0 + square)) - np.log(scale * reference[1])
    values = np.copysign(factor * np.sqrt(freedom * logarithm), z)
    return values, row_sums(np.nan_to_num(slope))


def restored(
    U: FloatArray, units: FloatArray, reference: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the values (m, d) of ``U`` in the fields' units, and log dU/dX there."""
    location, scale, freedom = units[..., LOCATION], units[..., SCALE], units[..., FREEDOM]
    factor = (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0)
    logarithm = np.minimum((U / factor) ** 2 / freedom, LARGEST_EXPONENT)
    square = np.expm1(logarithm)
    ratio = np.divide(square, logarithm, out=np.ones_like(square), where=logarithm > 0.0)
    slope = np.log(factor * np.sqrt(ratio)) - logarithm
    values = location + scale * np.copysign(np.sqrt(freedom * square), U)
    return reference[0] + reference[1] * values, slope - np.log(scale * reference[1])
