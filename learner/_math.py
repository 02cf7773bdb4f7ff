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

LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
"""Natural logarithm of 2 in two parts; the high one has zeros at its end, so that its product
with an exponent is exact."""

LOG2_E = 1.4426950408889634
SMALLEST_EXPONENT = -708.0
"""Below it the exponential is no normal number; it is taken for exp(-708), about 1e-308."""

INTEGER_SHIFT = 6755399441055744.0
"""1.5 * 2**52: adding it rounds to an integer and leaves that in the low bits."""

INTEGER_SHIFT_BITS = 0x4338000000000000
HALF_SQRT2_BITS = 0x3FE6A09E667F3BCD
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


@kernel
def exp_nonpositive(x: float) -> float:
    """e**x for x <= 0, to within two units in the last place.

    x = k ln 2 + t with t at most ln(2) / 2 in size; Taylor's series of degree 12 for e**t.
    """
    x = max(x, SMALLEST_EXPONENT)
    shifted = fma(x, LOG2_E, INTEGER_SHIFT)
    k = shifted - INTEGER_SHIFT
    t = fma(-k, LN2_LOW, fma(-k, LN2_HIGH, x))
    # in two halves, which wait for each other less than one long chain
    t2 = t * t
    t4 = t2 * t2
    low = fma(fma(t, 1.0 / 6.0, 0.5), t2, 1.0 + t)
    middle = fma(fma(t, 1.0 / 5040.0, 1.0 / 720.0), t2, fma(t, 1.0 / 120.0, 1.0 / 24.0))
    high = fma(fma(t, 1.0 / 39916800.0, 1.0 / 3628800.0), t2, fma(t, 1.0 / 362880.0, 1.0 / 40320.0))
    p = fma(fma(fma(t4, 1.0 / 479001600.0, high), t4, middle), t4, low)
    exponent = np.float64(shifted).view(np.int64) << MANTISSA_BITS
    return np.int64(np.float64(p).view(np.int64) + exponent).view(np.float64)


@kernel
def log_positive(x: float) -> float:
    """Natural logarithm of a normal x > 0, to within two units in the last place.

    x = 2**e m with m from sqrt(1/2) to sqrt(2), and log m = 2 artanh((m - 1) / (m + 1)).
    """
    bits = np.float64(x).view(np.int64)
    e = (bits - np.int64(HALF_SQRT2_BITS)) >> MANTISSA_BITS
    m = np.int64(bits - (e << MANTISSA_BITS)).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = fma(1.0 / 21.0, z, 1.0 / 19.0)
    p = fma(p, z, 1.0 / 17.0)
    p = fma(p, z, 1.0 / 15.0)
    p = fma(p, z, 1.0 / 13.0)
    p = fma(p, z, 1.0 / 11.0)
    p = fma(p, z, 1.0 / 9.0)
    p = fma(p, z, 1.0 / 7.0)
    p = fma(p, z, 1.0 / 5.0)
    p = fma(p, z, 1.0 / 3.0)
    k = np.int64(e + np.int64(INTEGER_SHIFT_BITS)).view(np.float64) - INTEGER_SHIFT
    return fma(k, LN2_HIGH, 2.0 * s + fma(2.0 * s, z * p, k * LN2_LOW))
