"""Exponential and logarithm from plain arithmetic.

Loops over rows with them compile to vector instructions, and a row's bits are the same in a
vector's lane, in the remainder and alone; a library's would differ, and change with its version.
Multiply-adds are fused where the code says so and nowhere else, for the same reason.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic, overload

from ._jit import kernel

LN2 = 0.6931471805599453
LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
"""Natural logarithm of 2 in two parts; the high one has zeros at its end, so that its product
with an exponent is exact."""

LOG2_E = 1.4426950408889634
NEGLIGIBLE = -60.0
"""Below it the exponential is taken for zero: e**-60 of the weight of a billion records is lost
in the rounding of one record's."""

INTEGER_SHIFT = 6755399441055744.0
"""1.5 * 2**52: adding it rounds to an integer and leaves that in the low bits."""

INTEGER_SHIFT_BITS = 0x4338000000000000
HALF_SQRT2_BITS = 0x3FE6A09E667F3BCD
ONE_BITS = 0x3FF0000000000000
EXPONENT_BIAS = 1023
MANTISSA_BITS = 52


def fma(a: float, b: float, c: float) -> float:
    """Compute a * b + c, rounded once (in kernels; as plain Python twice)."""
    return a * b + c


@intrinsic
def _fused(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """Emit the processor's fused multiply-add, or what gives the same bits without one."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), emit


@overload(fma)
def _fma_in_kernels(a: Any, b: Any, c: Any) -> Any:
    def fused(a: Any, b: Any, c: Any) -> Any:
        return _fused(a, b, c)  # type: ignore[call-arg]  # the compiler adds the context

    return fused


def choose(condition: bool, a: float, b: float) -> float:
    """Return ``a`` if the condition holds, else ``b``, without a branch (in kernels)."""
    return a if condition else b


@intrinsic
def _selected(typing_context: Any, condition: Any, a: Any, b: Any) -> Any:
    """Emit a selection, as a compiled branch may become a masked store, slow on some processors."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(*arguments)

    return types.float64(types.boolean, types.float64, types.float64), emit


@overload(choose)
def _choose_in_kernels(condition: Any, a: Any, b: Any) -> Any:
    def selected(condition: Any, a: Any, b: Any) -> Any:
        return _selected(condition, a, b)  # type: ignore[call-arg]  # the compiler adds the context

    return selected


@kernel
def exp_nonpositive(x: float) -> float:
    """e**x for x <= 0, to within a share of 3e-15; 0 where it is negligible.

    x = k ln 2 + t with t at most ln(2) / 2 in size, and the polynomial of degree 10 with 1 + t
    at its start that comes nearest to e**t (Remez).
    """
    if x < NEGLIGIBLE:
        return 0.0
    shifted = fma(x, LOG2_E, INTEGER_SHIFT)
    t = fma(INTEGER_SHIFT - shifted, LN2, x)
    # in two halves, which wait for each other less than one long chain
    t2 = t * t
    t4 = t2 * t2
    low = fma(fma(t, 0.16666666666611513, 0.49999999999998324), t2, 1.0 + t)
    middle = fma(t, 0.0083333333708921, 0.04166666666813741)
    middle = fma(fma(t, 0.00019841185203057628, 0.0013888888516073422), t2, middle)
    high = fma(t, 2.763500604211804e-06, 2.480193177991432e-05)
    high = fma(t2, 2.7476808436201135e-07, high)
    p = fma(fma(high, t4, middle), t4, low)
    exponent = np.float64(shifted).view(np.int64) << MANTISSA_BITS
    return np.int64(np.float64(p).view(np.int64) + exponent).view(np.float64)


@kernel
def log_positive(x: float) -> float:
    """Natural logarithm of a normal x > 0, to within two units in the last place.

    x = 2**e m with m from sqrt(1/2) to sqrt(2), and log m = 2 artanh s = 2 s + 2 s z p(z) with
    s = (m - 1) / (m + 1), z = s**2 and the nearest polynomial of degree 6 (Remez).
    """
    bits = np.float64(x).view(np.int64)
    # unsigned, as there is no vector instruction for an arithmetic shift
    biased = np.uint64(bits + np.int64(ONE_BITS - HALF_SQRT2_BITS)) >> np.uint64(MANTISSA_BITS)
    e = np.int64(biased) - EXPONENT_BIAS
    m = np.int64(bits - (e << MANTISSA_BITS)).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    z2 = z * z
    low = fma(fma(z, 0.142857143712372, 0.1999999999970716), z, 0.3333333333333367)
    high = fma(
        fma(z, 0.07398052064609066, 0.07657017977820958),
        z2,
        fma(z, 0.09091782431250174, 0.11111099281776277),
    )
    p = fma(high, z2 * z, low)
    k = np.int64(e + np.int64(INTEGER_SHIFT_BITS)).view(np.float64) - INTEGER_SHIFT
    return fma(k, LN2_HIGH, 2.0 * s + fma(2.0 * s, z * p, k * LN2_LOW))
