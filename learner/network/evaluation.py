"""The upward pass: log-densities of nodes for rows of data (paper, equation 1)."""

from __future__ import annotations

import numpy as np

from ..vector.compiler import Array, kernel
from ..vector.lanes import padded
from .block_evaluation import evaluate_rows, row_of
from .blocks import copy_columns, new_block
from .layout import NIL, ROOT
from .row_evaluation import evaluate_row


@kernel
def log_densities(
    header: Array,
    nodes: Array,
    edges: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    m: int,
    n_values: int,
    kept: Array,
    result: Array,
) -> Array:
    """Fill ``result`` (n,) with the root's log-density of the columns of ``Z`` (d, n).

    Goes by blocks of ``m`` columns and returns the last one's ``values`` (n_values, .), which like
    ``kept`` are those of ``evaluate``.
    """
    # made here, as a kernel's arrays do not lie across lines of the cache
    block, values = new_block(Z.shape[0], m), np.empty((n_values, padded(m)))
    root = header[ROOT]
    top = root if m == 1 else row_of(root, 0, kept)
    for start in range(0, Z.shape[1], m):
        n = min(m, Z.shape[1] - start)
        copy_columns(Z, start, n, block)
        # one column that is left over takes another one along
        wide = max(n, min(2, m))
        evaluate(header, nodes, edges, scopes, stats, block, wide, values, kept, NIL)
        for r in range(n):
            result[start + r] = values[top, r]
    return values


@kernel
def evaluate(
    header: Array,
    nodes: Array,
    edges: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    m: int,
    values: Array,
    kept: Array,
    end: int,
) -> None:
    """Compute log-densities of nodes for the first ``m`` columns of ``Z`` and their rows in values.

    ``Z`` (d, >= padded(m)) and ``values`` have columns for whole lanes; what is in the last ones
    means nothing. A node's row of ``values`` is what ``kept`` (nodes,) says. Those that keep none
    (NIL, or all if ``kept`` is empty) share the row of their level, one of the first
    ``deepest(d)``, of which the first is the root's in the end: what the nearest cache has room
    for. One column alone gives each node the row of its index. Rows of univariate leaves under
    products are left alone.

    The sum node ``end`` is left out; NIL for none. Missing values (NaN) are marginalised: a leaf
    without an observed variable counts as 1.
    """
    if m == 1:
        evaluate_row(header, nodes, edges, scopes, stats, Z, values, end)
    else:
        evaluate_rows(header, nodes, edges, scopes, stats, Z, m, values, kept, end)
