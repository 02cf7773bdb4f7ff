"""A value in units in which it is Gaussian, although its entity is known by few records.

The predictive distribution of a value is Student's t: the fewer records of its entity, the fewer
degrees of freedom. Wallace's transform (1959, "Bounds on normal approximations to Student's and the
chi-square distributions") makes it nearly standard Gaussian. So a network that learns the results
need not know how old an entity is. Any increasing map would keep densities exact: the slope of this
one is used, not an approximation.
"""

from __future__ import annotations

import math

from faust_oslrau.learner.vector.compiler import kernel

SMALL = 1e-8
"""Squares below it are their own log1p, to the last digit."""

LARGEST_SQUARE = 1e200
"""Squares above it may have overflowed."""

LARGEST = 600.0
"""Exponent at which the way back ends: no expected value is as far from its level."""


@kernel
def bend(freedom: float) -> float:
    """Return Wallace's factor, which makes the centre of the transform as steep as it should be."""
    return (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0)


@kernel
def to_gaussian(z: float, freedom: float) -> tuple[float, float]:
    """Return u(z) of a value ``z`` of Student's t, and log u'(z)."""
    square, factor = z * z / freedom, bend(freedom)
    if square < SMALL:
        logarithm, slope = square, math.log(factor) - 0.75 * square
    elif square < LARGEST_SQUARE:
        logarithm = math.log1p(square)
        slope = math.log(factor * math.sqrt(square / logarithm) / (1.0 + square))
    else:
        logarithm = 2.0 * math.log(abs(z)) - math.log(freedom)
        slope = math.log(factor) - 0.5 * (logarithm + math.log(logarithm))
    return math.copysign(factor * math.sqrt(freedom * logarithm), z), slope


@kernel
def from_gaussian(u: float, freedom: float) -> tuple[float, float]:
    """Return z with u(z) = ``u``, and log u'(z)."""
    scaled = u / bend(freedom)
    logarithm = min(scaled * scaled / freedom, LARGEST)
    z = math.copysign(math.sqrt(freedom * math.expm1(logarithm)), u)
    return z, to_gaussian(z, freedom)[1]
