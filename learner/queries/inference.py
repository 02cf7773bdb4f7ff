"""Exact queries on a network beyond its density, in the network's own units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.density.gaussians import conditional
from faust_oslrau.learner.density.mixtures import MEAN, REFERENCE, VARIANCE, total_moments
from faust_oslrau.learner.network.evaluation import evaluate
from faust_oslrau.learner.network.layout import LEAF, NIL, NODES_TOP, PRODUCT, SUM, deepest
from faust_oslrau.learner.network.leaves import parameters
from faust_oslrau.learner.network.structure import NO_ROWS, Network
from faust_oslrau.learner.vector.blocks import (
    copy_columns,
    neighbours_together,
    new_block,
    rows_per_block,
)

from .leave_one_out import assign_rows, leave_one_out


class Others(NamedTuple):
    """Each variable given the other observed variables, (d, m) each."""

    nats: FloatArray
    mean: FloatArray
    variance: FloatArray


def given_others(network: Network, Z: FloatArray) -> Others:
    """Return the distribution of each variable given the others, for each column of ``Z`` (d, m).

    ``nats`` are -log p(variable | others), meaningless where it is missing; ``mean`` and
    ``variance`` are the variable's moments given them.
    """
    result, joint = np.empty((4, *Z.shape)), np.empty(Z.shape[1])
    order, live = neighbours_together(Z), network.live
    value_rows = np.empty(len(network.nodes), np.int64)
    Z = np.ascontiguousarray(Z[:, order])
    n_values = assign_rows(live, network.nodes, network.edges, deepest(len(Z)), value_rows)
    rows = max(1, min(Z.shape[1], rows_per_block(n_values)))
    # both passes take whole lanes, even for one row
    block = new_block(len(Z), max(rows, 2))
    values, downs = np.empty((n_values, block.shape[1])), np.empty((n_values, block.shape[1]))
    mixtures = np.empty((4, *block.shape))
    for start in range(0, Z.shape[1], rows):
        m = min(rows, Z.shape[1] - start)
        copy_columns(Z, start, m, block)
        evaluate(network.pools, block, max(m, 2), values, value_rows, NIL)
        flat = mixtures.reshape(-1, block.shape[1])
        leave_one_out(network.pools, live, value_rows, block, m, values, downs, flat)
        joint[start : start + m] = values[value_rows[network.root], :m]
        result[:, :, start : start + m] = mixtures[:, :, :m]
    result[:, :, order], joint[order] = result.copy(), joint.copy()
    return Others(result[REFERENCE] - joint, result[MEAN], result[VARIANCE])


def sample(network: Network, n: int, rng: np.random.Generator, given: FloatArray) -> FloatArray:
    """Draw ``n`` rows (n, d) from the density given the observed values of ``given`` (d,)."""
    values = node_values(network, given)
    rows = np.tile(given, (n, 1))
    waiting = [(network.root, np.arange(n))]
    while waiting:
        i, chosen = waiting.pop()
        if network.nodes[i]["kind"] == SUM:
            children, share = posterior_weights(network, i, values)
            picks = rng.choice(len(children), size=len(chosen), p=share)
            waiting += [
                (child, chosen[picks == c])
                for c, child in enumerate(children)
                if (picks == c).any()
            ]
        elif network.nodes[i]["kind"] == PRODUCT:
            waiting += [(child, chosen) for child, _ in network.children(i)]
        else:
            scope = network.scope(i)
            mean, covariance = leaf_moments(network, i, given[scope])
            missing = np.isnan(given[scope])
            if missing.any():
                draws = rng.multivariate_normal(
                    mean[missing], covariance[np.ix_(missing, missing)], len(chosen),
                    method="cholesky",
                )  # fmt: skip
                rows[np.ix_(chosen, scope[missing])] = draws
    return rows


def moments(network: Network, given: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean (d,) and covariance (d, d) given the observed values of ``given`` (d,).

    The mean of an observed variable is its value, with covariance 0.
    """
    values = node_values(network, given)
    done: dict[int, tuple[FloatArray, FloatArray]] = {}
    for i in network.live.tolist():
        if network.nodes[i]["kind"] == SUM:
            children, share = posterior_weights(network, i, values)
            means, covariances = zip(*[done.pop(child) for child in children], strict=True)
            done[i] = total_moments(share, np.array(means), np.array(covariances))
        elif network.nodes[i]["kind"] == PRODUCT:
            done[i] = _join(network, i, done)
        else:
            done[i] = leaf_moments(network, i, given[network.scope(i)])
    return done[network.root]


def node_values(network: Network, z: FloatArray) -> FloatArray:
    """Log-density of every node for one row (d,), by node index."""
    block = new_block(len(z), 1)
    block[:, 0] = z
    values = np.empty((int(network.header[NODES_TOP]), block.shape[1]))
    evaluate(network.pools, block, 1, values, NO_ROWS, NIL)
    return values[:, 0]


def posterior_weights(network: Network, i: int, values: FloatArray) -> tuple[list[int], FloatArray]:
    """Children of a sum node and their probabilities given what was observed."""
    children, weights = zip(*network.children(i), strict=True)
    logs = np.log(weights) + values[list(children)]
    share = np.exp(logs - logs.max())
    return list(children), share / share.sum()


def leaf_moments(network: Network, i: int, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance of a leaf over its scope, given the observed values of ``x``."""
    node = network.nodes[i]
    if node["kind"] == LEAF:
        mean, W = np.array([node["mean"]]), np.array([[np.sqrt(node["precision"])]])
    else:
        _, mean, W = parameters(i, network.nodes, network.pools.scopes, network.stats)
    return conditional(mean, W, x)


def _join(
    network: Network, i: int, done: dict[int, tuple[FloatArray, FloatArray]]
) -> tuple[FloatArray, FloatArray]:
    scope = network.scope(i)
    mean, covariance = np.empty(len(scope)), np.zeros((len(scope), len(scope)))
    for child, _ in network.children(i):
        at = np.searchsorted(scope, network.scope(child))
        mean[at], covariance[np.ix_(at, at)] = done.pop(child)
    return mean, covariance
