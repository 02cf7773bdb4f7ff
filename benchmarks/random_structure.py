"""A random sum-product network, the usual choice where no structure is learned.

The tree is written in the learner's own state format, as there is no other public way to hand it
a structure; reading checks that it is complete and decomposable.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from faust_oslrau.learner import OSLRAU
from faust_oslrau.learner.network.layout import LEAF, PRODUCT, SUM, moments_length
from faust_oslrau.learner.state import pack, unpack

from .crossval import Fit, learn
from .datasets import Array, Setting

BRANCHES = 2
"""Children of each sum but the root."""


def random_structure(n_nodes: int, seed: int) -> Fit:
    """Learn the parameters of a random structure of ``n_nodes`` or a little more (Algorithm 1)."""

    def fit(folds: Iterable[Array], setting: Setting) -> OSLRAU:
        parts = list(folds)
        model = random_model(parts[0].shape[1], n_nodes, seed)
        return learn(model, parts, setting)

    return fit


def random_model(d: int, n_nodes: int, seed: int) -> OSLRAU:
    """Build a model that never changes its structure, with N(m, 1) leaves, m drawn from N(0, 1)."""
    blank = OSLRAU.paper(structure_until=0)
    values, arrays = unpack(blank.partial_fit(np.zeros((1, d))).to_bytes(), "OSLRAU")
    tree = RandomTree(d, n_nodes, np.random.default_rng(seed)).arrays()
    arrays |= {name: np.array(part, arrays[name].dtype) for name, part in tree.items()}
    return OSLRAU.from_bytes(pack("OSLRAU", values | {"n_records": 0}, arrays))


class RandomTree:
    """Nodes listed children first: sums over products that halve their scope at random."""

    def __init__(self, d: int, n_nodes: int, rng: np.random.Generator) -> None:
        self._rng = rng
        self._kinds: list[int] = []
        self._n_children: list[int] = []
        self._leaf_scopes: list[int] = []
        self._n_statistics = 0
        components = 0
        while len(self._kinds) + 1 < n_nodes or components == 0:
            self._split(np.arange(d))
            components += 1
        self._add(SUM, components)

    def arrays(self) -> dict[str, ArrayLike]:
        """Return the tree by the names of the learner's state format."""
        n, n_leaves = len(self._kinds), len(self._leaf_scopes)
        return {
            "kind": self._kinds,
            "n_children": self._n_children,
            "weight": np.ones(n),
            "count": np.zeros(n),
            "leaf_size": np.ones(n_leaves),
            "leaf_scope": self._leaf_scopes,
            "observed": np.zeros(n_leaves),
            "mean": self._rng.normal(size=n_leaves),
            "variance": np.ones(n_leaves),
            "statistics": np.zeros(self._n_statistics),
        }

    def _split(self, scope: Array) -> None:
        """Add a product of two random halves, or of one variable."""
        shuffled = self._rng.permutation(scope)
        halves = [half for half in np.array_split(shuffled, 2) if len(half) > 0]
        for half in halves:
            self._mix(half)
        self._add(PRODUCT, len(halves))
        self._n_statistics += moments_length(len(scope))

    def _mix(self, scope: Array) -> None:
        """Add a sum of random splits, or a leaf."""
        if len(scope) == 1:
            self._leaf_scopes.append(int(scope[0]))
            self._add(LEAF, 0)
            return
        for _ in range(BRANCHES):
            self._split(scope)
        self._add(SUM, BRANCHES)

    def _add(self, kind: int, n_children: int) -> None:
        self._kinds.append(kind)
        self._n_children.append(n_children)
