"""Kernels of the downward pass of inference: every variable given all the others, at once.

The density is linear in the leaves of one variable, so that the derivative of the root with
respect to each of them tells the density without that variable: one pass up and one down
instead of one evaluation for each variable.

A variable given the others is a mixture of one Gaussian a leaf. ``mixtures`` (2 or 4, d, m)
gathers them for each variable and row: the logarithm of the largest weight, the sum of the
weights as multiples of it, and, where asked for, mean and variance. ``component`` (3, m) is what
a leaf adds: the logarithm of its weight, which is the density of the others, mean and variance.
"""

from __future__ import annotations

import numpy as np

from ._density import add_term
from ._gaussian import LOG_2PI, ends_of_runs, gaussian, observed_densities, whiten
from ._jit import kernel
from ._layout import LAST, LEAF, MULTIVARIATE_LEAF, NIL, PRODUCT, ROOT, SUM, Array
from ._math import choose, exp_nonpositive, fma, log_positive

LARGEST, TOTAL, MEAN, VARIANCE = range(4)
"""Of ``mixtures``."""

CENTRE, SPREAD = range(2)
"""Of ``component``."""

SMALLEST = -1e300
"""Logarithm of the largest weight before the first: finite, as infinities have no difference."""

FAR = 1e12
"""Squared distance from a leaf, in standard deviations, from which on an entry is not left out by
taking it away again: what is left of the others would be lost in its rounding."""


@kernel
def leave_one_out(
    header: Array,
    nodes: Array,
    edges: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    m: int,
    values: Array,
    downs: Array,
    mixtures: Array,
) -> None:
    """Fill ``mixtures`` with each variable given the others, for ``m`` columns of ``Z`` (d, >= m).

    ``values`` (nodes, >= m) are those of the upward pass. ``downs``, of the same shape, is scratch
    for the log-derivatives of the root with respect to children of products. Those of children of
    sums differ from the sum's own by a weight: they are kept as another node's row and a number.
    The network must be a tree.
    """
    d, root = Z.shape[0], header[ROOT]
    children, product, component = np.empty(d, np.int64), np.empty(m), np.empty((2, m))
    weights, before = np.empty((d, m)), np.empty((d, m))
    scratch, vectors = np.empty((2 * d + 2, m)), np.empty((d + 1, d))
    ends = ends_of_runs(Z, m)
    row, log_weight = np.empty(len(values), np.int64), np.zeros(len(values))
    mixtures[:] = 0.0
    mixtures[LARGEST] = SMALLEST
    downs[root, :m] = 0.0
    row[root] = root
    i = header[LAST]
    while i != NIL:
        kind = nodes[i]["kind"]
        if kind == SUM:
            descend_sum(i, nodes, edges, m, downs, row, log_weight, weights, component, mixtures)
        elif kind == PRODUCT:
            add_constant(downs, row[i], log_weight[i], m, product)
            multiply_out(i, nodes, edges, Z, m, values, children, product, before, weights)
            for c in range(nodes[i]["n_children"]):
                child = children[c]
                row[child] = child
                if nodes[child]["kind"] == LEAF:
                    add_leaf(child, nodes, weights, c, component, m, mixtures)
                else:
                    for r in range(m):
                        downs[child, r] = weights[c, r]
        elif kind == MULTIVARIATE_LEAF:
            add_constant(downs, row[i], log_weight[i], m, product)
            add_conditionals(
                i, nodes, scopes, stats, Z, m, product, weights, component, scratch,
                vectors, ends, mixtures,
            )  # fmt: skip
        i = nodes[i]["previous"]
    for v in range(d):
        for r in range(m):
            mixtures[LARGEST, v, r] += log_positive(mixtures[TOTAL, v, r])


@kernel
def add_constant(rows: Array, i: int, constant: float, m: int, result: Array) -> None:
    """Set ``result`` (m,) to row ``i`` of ``rows`` and a constant more."""
    for r in range(m):
        result[r] = rows[i, r] + constant


@kernel
def descend_sum(
    i: int,
    nodes: Array,
    edges: Array,
    m: int,
    downs: Array,
    row: Array,
    log_weight: Array,
    weights: Array,
    component: Array,
    mixtures: Array,
) -> None:
    """Give each child of a sum the parent's derivative times its weight."""
    total = 0.0
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        total += edges[edge]["weight"]
        edge = edges[edge]["next"]
    edge = nodes[i]["first_edge"]
    while edge != NIL:
        child = edges[edge]["child"]
        row[child] = row[i]
        log_weight[child] = log_weight[i] + log_positive(edges[edge]["weight"] / total)
        if nodes[child]["kind"] == LEAF:
            add_constant(downs, row[i], log_weight[child], m, weights[0])
            add_leaf(child, nodes, weights, 0, component, m, mixtures)
        edge = edges[edge]["next"]


@kernel
def multiply_out(
    i: int,
    nodes: Array,
    edges: Array,
    Z: Array,
    m: int,
    values: Array,
    children: Array,
    product: Array,
    before: Array,
    weights: Array,
) -> None:
    """List the children of a product, last first, and fill ``weights`` with the derivative by each.

    That is the parent's, which ``product`` (m,) is at first, times the values of the siblings:
    multiplied up from both ends rather than divided out of the whole, which would lose
    the digits of everything that stands beside one very unlikely child. The list is in reverse as
    the compiler makes no vector instructions of a loop down over rows.
    """
    edge, c = nodes[i]["first_edge"], nodes[i]["n_children"]
    while edge != NIL:
        c -= 1
        child = edges[edge]["child"]
        if nodes[child]["kind"] == LEAF:
            variable, mean = nodes[child]["scope"], nodes[child]["mean"]
            precision, log_norm = nodes[child]["precision"], nodes[child]["log_norm"]
            for r in range(m):
                weights[c, r] = gaussian(Z[variable, r], mean, precision, log_norm)
        else:
            for r in range(m):
                weights[c, r] = values[child, r]
        for r in range(m):
            before[c, r] = product[r]
            product[r] += weights[c, r]
        children[c] = child
        edge = edges[edge]["next"]
    for r in range(m):
        product[r] = 0.0
    for c in range(nodes[i]["n_children"]):
        for r in range(m):
            value = weights[c, r]
            weights[c, r] = before[c, r] + product[r]
            product[r] += value


@kernel
def add_leaf(
    i: int, nodes: Array, weights: Array, c: int, component: Array, m: int, mixtures: Array
) -> None:
    """Merge a univariate leaf with row ``c`` of ``weights`` into its variable's mixture."""
    for r in range(m if len(mixtures) > MEAN else 0):
        component[CENTRE, r] = nodes[i]["mean"]
        component[SPREAD, r] = 1.0 / nodes[i]["precision"]
    add_component(nodes[i]["scope"], weights, c, component, m, mixtures)


@kernel
def add_component(
    v: int, weights: Array, c: int, component: Array, m: int, mixtures: Array
) -> None:
    """Merge a Gaussian of each row into the mixtures of a variable."""
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


@kernel
def add_conditionals(
    i: int,
    nodes: Array,
    scopes: Array,
    stats: Array,
    Z: Array,
    m: int,
    down: Array,
    weights: Array,
    component: Array,
    scratch: Array,
    vectors: Array,
    ends: Array,
    mixtures: Array,
) -> None:
    """Merge a multivariate leaf's Gaussians, of each variable given its other ones.

    ``scratch`` (> 2 k + 1, m) holds sums, the distances from the mean, and y; ``vectors`` is
    (> d, d). Rows that lack entries, or are far, are told for each entry apart what the others say.
    """
    k, scope, block = nodes[i]["n_scope"], nodes[i]["scope"], nodes[i]["stats"]
    W = stats[block + k * (k + 2) : block + k * (2 * k + 2)].reshape((k, k))
    sums, dx, y = scratch[0], scratch[1 : k + 1], scratch[k + 1 : 2 * k + 2]
    for a in range(k):
        variable, mean = scopes[scope + a], stats[block + a]
        for r in range(m):
            dx[a, r] = Z[variable, r] - mean
    whiten_all(W, scratch, y, m)
    runs = np.empty((m, 2), np.int64)
    n_runs = list_irregular(sums, m, ends, runs)
    for r in range(m):
        sums[r] = 0.0
    for a in range(k):
        leave_out(W, a, dx, y, m, nodes[i]["log_norm"], down, sums, weights[0], component)
        for lo, hi in runs[:n_runs]:
            whiten_others(W, a, dx, lo, hi, y)
            length = observed_densities(
                i, a, nodes, scopes, stats, Z, lo, hi, y, vectors, weights[0]
            )
            for r in range(lo, hi):
                weights[0, r] += down[r]
                component[CENTRE, r] = -y[k, r] / length
                component[SPREAD, r] = 1.0 / (length * length)
        for r in range(m if len(mixtures) > MEAN else 0):
            component[CENTRE, r] += stats[block + a]
        add_component(scopes[scope + a], weights, 0, component, m, mixtures)


@kernel
def whiten_all(W: Array, scratch: Array, y: Array, m: int) -> None:
    """Fill ``y`` (>= k, m) with W times the distances, which follow the first row of ``scratch``.

    That row becomes the squared length of each column of y.
    """
    for c in range(len(W)):
        whiten(W[c, : c + 1], scratch, m)
        for r in range(m):
            y[c, r] = scratch[0, r]
    for r in range(m):
        scratch[0, r] = 0.0
    for c in range(len(W)):
        for r in range(m):
            scratch[0, r] = fma(y[c, r], y[c, r], scratch[0, r])


@kernel
def list_irregular(length: Array, m: int, ends: Array, runs: Array) -> int:
    """List in ``runs`` (m, 2) where rows that lack entries or are far begin and end.

    Those of one run lack the same entries. ``length`` (m,) are squared distances, NaN where
    entries are missing. Returns the number of runs.
    """
    n, lo = 0, 0
    while lo < m:
        hi = lo + 1
        if not length[lo] < FAR:
            end = ends[lo] if len(ends) > 0 else m
            while hi < end and not length[hi] < FAR:
                hi += 1
            runs[n, 0], runs[n, 1] = lo, hi
            n += 1
        lo = hi
    return n


@kernel
def whiten_others(W: Array, a: int, dx: Array, lo: int, hi: int, y: Array) -> None:
    """Fill ``y[:, lo:hi]`` with W times what those rows, which lack the same, have but ``a``."""
    for r in range(lo, hi):
        for c in range(len(W)):
            y[c, r] = 0.0
            for b in range(c + 1):
                if dx[b, r] == dx[b, r] and b != a:
                    y[c, r] = fma(W[c, b], dx[b, r], y[c, r])


@kernel
def leave_out(
    W: Array,
    a: int,
    dx: Array,
    y: Array,
    m: int,
    log_norm: float,
    down: Array,
    above: Array,
    log_weight: Array,
    component: Array,
) -> None:
    """Fill ``log_weight`` (m,) with ``down`` times the density of all entries but ``a``.

    ``component`` becomes what they say about ``a``, from the leaf's mean. Leaving out moves ``y``
    (>= k, m) along column ``a`` of W, which begins at row ``a``: ``above`` (m,) is the squared
    length of what lies above, and is moved on by one row.
    """
    precision = 0.0
    for c in range(a, len(W)):
        precision += W[c, a] * W[c, a]
    log_norm += 0.5 * (LOG_2PI - log_positive(precision))
    spread = 1.0 / precision
    for r in range(m):
        component[CENTRE, r], component[SPREAD, r], log_weight[r] = 0.0, spread, above[r]
    for c in range(a, len(W)):
        factor = W[c, a] * spread
        for r in range(m):
            component[CENTRE, r] = fma(factor, y[c, r], component[CENTRE, r])
    for c in range(a, len(W)):
        factor = -W[c, a]
        for r in range(m):
            left = fma(factor, component[CENTRE, r], y[c, r])
            log_weight[r] = fma(left, left, log_weight[r])
    for r in range(m):
        log_weight[r] = down[r] + fma(-0.5, log_weight[r], log_norm)
        component[CENTRE, r] = dx[a, r] - component[CENTRE, r]
        above[r] = fma(y[a, r], y[a, r], above[r])
