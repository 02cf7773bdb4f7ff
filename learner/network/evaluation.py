"""The upward pass: log-densities of nodes for rows of data (paper, equation 1)."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.vector.blocks import copy_columns, new_block
from faust_oslrau.learner.vector.compiler import Array, kernel
from faust_oslrau.learner.vector.lanes import padded

from .block_evaluation import evaluate_rows, row_of
from .layout import NIL, ROOT, Pools
from .row_evaluation import evaluate_row


@kernel
def log_densities(
    pools: Pools, Z: Array, m: int, n_values: int, value_rows: Array, result: Array
) -> Array:
    """Fill ``result`` (n,) with the root's log-density of the columns of ``Z`` (d, n).

    Evaluates blocks of ``m`` columns and returns the ``values`` (n_values, .) of the last one;
    ``values`` and ``value_rows`` are those of `evaluate`.
    """
    # allocated here, as arrays of a kernel are aligned to cache lines
    block, values = new_block(Z.shape[0], m), np.empty((n_values, padded(m)))
    root = pools.header[ROOT]
    top = root if m == 1 else row_of(root, 0, value_rows)
    for start in range(0, Z.shape[1], m):
        n = min(m, Z.shape[1] - start)
        copy_columns(Z, start, n, block)
        # a single column that is left over is evaluated as two, as blocks are
        wide = max(n, min(2, m))
        evaluate(pools, block, wide, values, value_rows, NIL)
        for r in range(n):
            result[start + r] = values[top, r]
    return values


@kernel
def evaluate(pools: Pools, Z: Array, m: int, values: Array, value_rows: Array, end: int) -> None:
    """Fill ``values`` with the log-densities of nodes for the first ``m`` columns of ``Z``.

    ``Z`` (d, >= padded(m)) and ``values`` have columns for whole lanes; those past ``m`` mean
    nothing.

    ``value_rows`` (nodes,) says which row of ``values`` a node gets. Nodes without a row of their
    own (NIL, or all nodes if ``value_rows`` is empty) share one row for each level, the first
    ``deepest(d)`` rows of ``values``: so few fit into the nearest cache. In the end, the first of
    these holds the values of the root. If ``m`` is 1, the row of a node is its index. Univariate
    leaves under products get no values.

    The sum node ``end`` is left out; NIL for none. Missing values (NaN) are marginalised: a leaf
    without an observed variable has the density 1.
    """
    if m == 1:
        evaluate_row(pools, Z, values, end)
    else:
        evaluate_rows(pools, Z, m, values, value_rows, end)
