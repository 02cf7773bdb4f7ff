"""Sum-product trees whose parameters are learned online: a random one, and a mixture."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit
from numpy.typing import NDArray

from benchmarks.datasets import Array
from benchmarks.mixtures import N_COMPONENTS
from benchmarks.random_structure import RandomTree
from faust_oslrau.learner.network.layout import LEAF, PRODUCT, SUM

CHUNK = 64
"""Rows that are scored at a time: each needs a value for every node."""


@dataclass(frozen=True)
class Structure:
    """Nodes (n,), children first: kinds, parents, and the variables (L, s) of each leaf."""

    kind: NDArray[np.int8]
    parent: NDArray[np.int64]
    scopes: NDArray[np.int64]

    @cached_property
    def leaves(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.kind == LEAF)

    @cached_property
    def of_sum(self) -> NDArray[np.bool_]:
        """Nodes (n,) that a sum chooses among: its children, if there are at least two."""
        n_children = np.bincount(self.parent[:-1], minlength=len(self.kind))
        return np.append(
            (self.kind == SUM)[self.parent[:-1]] & (n_children > 1)[self.parent[:-1]], False
        )

    @property
    def n_parameters(self) -> int:
        n, s = self.scopes.shape
        n_sums = len(np.unique(self.parent[self.of_sum]))
        return int(self.of_sum.sum() - n_sums + n * (s + s * (s + 1) // 2))

    def points(self, X: Array) -> Array:
        """Return what each leaf sees of each row (m, L, s)."""
        return X[:, self.scopes]

    def siblings_sum(self, values: Array) -> Array:
        """Sum values (n,) over the children of a sum, for each child (n,); 1 elsewhere."""
        known = np.where(self.of_sum, values, 0.0)[:-1]
        totals = np.bincount(self.parent[:-1], known, minlength=len(self.kind))
        return np.where(self.of_sum, totals[self.parent], 1.0)

    def weights(self, counts: Array) -> Array:
        """Return each child's share of its sum by counts (n,), 1 for the others."""
        return np.where(self.of_sum, counts / self.siblings_sum(counts), 1.0)

    def values(self, weights: Array, log_leaf: Array) -> Array:
        """Log-values (m, n) of all nodes, from the leaves' log-densities (m, L)."""
        return np.asarray(_values(self.kind, self.parent, np.log(weights), log_leaf))

    def shares(self, weights: Array, values: Array) -> Array:
        """Probability (m, n) that a row came through each node, in time linear in the edges."""
        return np.asarray(_shares(self.kind, self.parent, np.log(weights), values))


@dataclass(frozen=True)
class TreeDensity:
    """A structure with weights (n,) and Gaussian leaves: means (L, s), covariances (L, s, s)."""

    structure: Structure
    weights: Array
    means: Array
    covariances: Array

    @property
    def n_nodes_(self) -> int:
        return len(self.structure.kind)

    @property
    def n_parameters_(self) -> int:
        return self.structure.n_parameters

    def score_samples(self, X: Array, *, variance_floor: float | None = None) -> Array:
        covariances = self.covariances if variance_floor is None else self._floored(variance_floor)
        whitening = whitening_of(covariances)
        root = np.empty(len(X))  # of a view of the values, these would stay
        for start in range(0, len(X), CHUNK):
            root[start : start + CHUNK] = self.values(X[start : start + CHUNK], whitening)[:, -1]
        return root

    def values(self, X: Array, whitening: Array) -> Array:
        points = self.structure.points(X) - self.means
        return self.structure.values(self.weights, log_gaussians(points, whitening))

    def _floored(self, floor: float) -> Array:
        """Raise the variance of single variables; covariances get the floor on the diagonal."""
        if self.means.shape[1] == 1:
            return np.maximum(self.covariances, floor)
        return self.covariances + floor * np.eye(self.means.shape[1])


def whitening_of(covariances: Array) -> Array:
    """Return the inverse Cholesky factors (L, s, s) of covariances."""
    if covariances.shape[1] == 1:
        return np.asarray(1.0 / np.sqrt(covariances))
    return np.asarray(np.linalg.inv(np.linalg.cholesky(covariances)))


def log_gaussians(points: Array, whitening: Array) -> Array:
    """Log-densities (m, L) of points (m, L, s) around Gaussians with means 0."""
    whitened = np.einsum("lij,mlj->mli", whitening, points)
    log_norm = np.log(np.diagonal(whitening, axis1=1, axis2=2)).sum(axis=1)
    log_norm -= 0.5 * points.shape[2] * np.log(2 * np.pi)
    return np.asarray(log_norm - 0.5 * (whitened**2).sum(axis=2))


def random_tree(d: int, n_nodes: int, seed: int) -> tuple[Structure, Array]:
    """Draw a tree of ``n_nodes`` or a little more over ``d`` variables, and means (L, 1)."""
    arrays = RandomTree(d, n_nodes, np.random.default_rng(seed)).arrays()
    kind = np.asarray(arrays["kind"], np.int8)
    scopes = np.asarray(arrays["leaf_scope"], np.int64)[:, None]
    structure = Structure(kind, parents(np.asarray(arrays["n_children"])), scopes)
    return structure, np.asarray(arrays["mean"], np.float64)[:, None]


def parents(n_children: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the parent (n,) of each node, -1 for the root, which is the last."""
    parent = np.full(len(n_children), -1)
    open_nodes: list[int] = []
    for node, n in enumerate(n_children.tolist()):
        first = len(open_nodes) - n
        parent[open_nodes[first:]] = node
        del open_nodes[first:]
        open_nodes.append(node)
    return parent


def mixture_tree(first: Array) -> tuple[Structure, Array]:
    """Return one sum over leaves of all variables, and some of the first rows as means (L, d)."""
    k, d = N_COMPONENTS, first.shape[1]
    means = first[np.random.default_rng(0).choice(len(first), k, replace=len(first) < k)]
    kind = np.array([LEAF] * k + [SUM], np.int8)
    return Structure(kind, np.array([k] * k + [-1]), np.tile(np.arange(d), (k, 1))), means


@njit(cache=True)
def _values(kind, parent, log_weight, log_leaf):  # type: ignore[no-untyped-def]
    m, n = len(log_leaf), len(kind)
    values = np.where(kind == SUM, -np.inf, 0.0) + np.zeros((m, n))
    for row in range(m):
        value, leaf = values[row], 0
        for node in range(n):
            if kind[node] == LEAF:
                value[node] = log_leaf[row, leaf]
                leaf += 1
            above = parent[node]
            if above >= 0 and kind[above] == PRODUCT:
                value[above] += value[node]
            elif above >= 0:
                value[above] = np.logaddexp(value[above], log_weight[node] + value[node])
    return values


@njit(cache=True)
def _shares(kind, parent, log_weight, values):  # type: ignore[no-untyped-def]
    m, n = values.shape
    shares = np.ones((m, n))
    for row in range(m):
        value, share = values[row], shares[row]
        for node in range(n - 2, -1, -1):
            above = parent[node]
            share[node] = share[above]
            if kind[above] == SUM:
                share[node] *= np.exp(log_weight[node] + value[node] - value[above])
    return shares
