"""Exponential and logarithm from plain arithmetic, for numbers and lanes alike.

The functions of a library give different bits in a vector and alone, and change with its version.
"""

from __future__ import annotations

from .compiler import kernel
from .lanes import INTEGER_SHIFT, Value, choose, fma, split, times_power

LN2 = 0.6931471805599453
LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
"""Natural logarithm of 2 in two parts; the high one has zeros at its end, so that its product
with an exponent is exact."""

LOG2_E = 1.4426950408889634
LEAST_EXPONENT = -700.0
"""Smaller exponents count as this one: its exponential is negligible, but still a normal number."""


@kernel
def larger(a: Value, b: Value) -> Value:
    """Return the larger one, ``b`` if ``a`` is NaN."""
    return choose(a > b, a, b)


@kernel
def smaller(a: Value, b: Value) -> Value:
    """Return the smaller one, ``b`` if ``a`` is NaN."""
    return choose(a < b, a, b)


@kernel
def exp_bounded(x: Value) -> Value:
    """Return e**x with a relative error of at most 6e-11, and at least e**LEAST_EXPONENT.

    For x up to 700; the result of larger x is never used.

    x = k ln 2 + t with abs(t) <= ln(2) / 2. The polynomial of degree 7 is the best approximation of
    e**t that starts with 1 + t (Remez). Each sum of a network adds at most 6e-11 nats to the error
    of a log-density; one more degree would cost a thirtieth of the time.
    """
    x = larger(x, LEAST_EXPONENT)
    shifted = fma(x, LOG2_E, INTEGER_SHIFT)
    t = fma(INTEGER_SHIFT - shifted, LN2, x)
    p = fma(t, 0.00019790341413420778, 0.0013944659616467261)
    p = fma(
        fma(fma(fma(p, t, 0.008333497075097656), t, 0.04166629494748421), t, 0.16666665868933914),
        t,
        0.5000000067682017,
    )
    return times_power(fma(t * t, p, 1.0 + t), shifted)


@kernel
def log_positive(x: Value) -> Value:
    """Return the natural logarithm of a normal x > 0 with a relative error of at most 4e-14.

    x = 2**k m with m from sqrt(1/2) to sqrt(2), and log m = 2 artanh s = 2 s + 2 s z p(z) with
    s = (m - 1) / (m + 1), z = s**2 and p the best polynomial of degree 4 (Remez).
    """
    k, m = split(x)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    z2 = z * z
    low = fma(z, 0.19999997811269254, 0.33333333337899956)
    high = fma(z, 0.11088097149205207, 0.14286054526091646)
    p = fma(fma(z2, 0.09792027924340548, high), z2, low)
    return fma(k, LN2_HIGH, 2.0 * s + fma(2.0 * s, z * p, k * LN2_LOW))


@kernel
def gaussian_tail(z: Value) -> tuple[Value, Value]:
    """Return the mass of N(0, 1) beyond z >= 0, to a relative error of 2e-9, and e**(-z z/2).

    Beyond 40, where next to nothing is left, both are those at 40. The mass is p(t) e**(-z z/2) /
    (z + c) with t = (z - c) / (z + c), which maps all z to -1 to 1 (Schonfelder 1978 does so for
    erfc). c = 4.75 and p are the best for a polynomial of degree 11.
    """
    z = smaller(z, 40.0)
    scale = 1.0 / (z + 4.75)
    t = (z - 4.75) * scale
    p = fma(t, -3.176545568450706e-05, 5.9223900551685915e-05)
    p = fma(p, t, 0.0002768799765133778)
    p = fma(p, t, -0.001131066654198598)
    p = fma(p, t, 0.00011597622148273867)
    p = fma(p, t, 0.011437269180172821)
    p = fma(p, t, -0.050616373460961345)
    p = fma(p, t, 0.13812613463932777)
    p = fma(p, t, -0.2841842384445901)
    p = fma(p, t, 0.4720632879856308)
    p = fma(p, t, -0.6535893399076578)
    p = fma(p, t, 0.7664162929148681)
    height = exp_bounded(-0.5 * z * z)
    return height * scale * p, height
