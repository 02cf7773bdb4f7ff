"""Kernels of ordered numbers: replacing some of them, ranks, and moments of the lowest."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.vector.compiler import Array, kernel


@kernel
def replace_ordered(ascending: Array, old: Array, new: Array) -> Array:
    """Return ``ascending`` without ``old``, all of which it holds, and with ``new``, in order.

    All three are in ascending order and without NaN. One pass, where a sort would take several.
    """
    result = np.empty(len(ascending) + len(new))
    n, next_old, next_new = 0, 0, 0
    for x in ascending:
        if next_old < len(old) and x == old[next_old]:
            next_old += 1
            continue
        while next_new < len(new) and new[next_new] < x:
            result[n] = new[next_new]
            n += 1
            next_new += 1
        result[n] = x
        n += 1
    for i in range(next_new, len(new)):
        result[n] = new[i]
        n += 1
    return result[:n]


@kernel
def ranks(ascending: Array, x: Array, ties: bool) -> Array:
    """Count the ordered numbers below each ``x`` (m,); with ``ties``, those equal to it too.

    All binary searches take a step in turn, so that their memory accesses overlap.
    """
    below = np.zeros(len(x), np.int64)
    n = len(ascending)
    while n > 0:
        half = (n + 1) // 2
        for i in range(len(x)):
            middle = ascending[below[i] + half - 1]
            below[i] += half * ((middle < x[i]) | (ties & (middle == x[i])))
        n -= half
    return below


@kernel
def ranks_between(ascending: Array, x: Array) -> Array:
    """Count the ordered numbers not above each ``x`` (m,), and how far it is to the next one.

    That is a share, from 0 at one number to 1 at the next; also 0 below all, and 1 above all.
    """
    n = len(ascending)
    below = ranks(ascending, x, True)
    result = np.empty(len(x))
    for i in range(len(x)):
        at = below[i]
        result[i] = at
        if at == n:
            result[i] += x[i] > ascending[n - 1]
        elif at > 0:
            lower, upper = ascending[at - 1], ascending[at]
            result[i] += (x[i] - lower) / (upper - lower)
    return result


@kernel
def excess_moments(ascending: Array, n: int) -> tuple[float, float]:
    """Mean of how far the ``n`` lowest lie below the next, and mean of that times their ranks.

    Ranks are shares, (i + 0.35) / n of the i-th lowest.
    """
    total, weighted = 0.0, 0.0
    for i in range(n):
        excess = ascending[n] - ascending[i]
        total += excess
        weighted += (i + 0.35) / n * excess
    return total / n, weighted / n
