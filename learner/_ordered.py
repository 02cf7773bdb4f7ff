"""A kernel of ordered numbers that change a little at a time."""

from __future__ import annotations

import numpy as np

from ._jit import kernel
from ._layout import Array


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
    end = n + len(new) - next_new
    result[n:end] = new[next_new:]
    return result[:end]
