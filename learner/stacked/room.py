"""How two networks share the node budget of one, and how the one that is left grows again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .background import N_BACKGROUND
from .leaf_merging import merge_leaves
from .leaves import WIDE
from .network import StackedNetwork
from .product_merging import merge_products
from .sizes import Sizes
from .training import CLIP, Rule, Training, new_products
from .tree import Tree

FloatArray = NDArray[np.float64]

LEAVES = 0.5
"""Share of a challenger's nodes that are leaves."""

MERGED = 0.42
"""Share of its leaves that an incumbent keeps before it loses products, which cost more."""

FEWEST_LEAVES, FEWEST_PRODUCTS = 2, 2
"""Leaves by variable, and products in all, of either network."""

WIDE_STREAM = 50
"""Variables beyond which two networks may exceed the node budget."""

NEW_TREE = 0.05
"""Weight of a tree that is grown from the sample."""


def split(
    full: Sizes, d: int, max_nodes: int, share: float, *, keep_tree: bool
) -> tuple[Sizes, Sizes] | None:
    """Share out the nodes to an incumbent and a challenger; None if there are too few.

    The incumbent gets this ``share`` of them. Two networks of a stream of more than 50 fields may
    exceed the budget; they have at most 24 d + 400 nodes then.
    """
    fixed = full._replace(leaves=0, products=0, tree=full.tree if keep_tree else 0)
    left = int(share * max_nodes) - _nodes(fixed, d)
    least = max(int(MERGED * full.leaves), FEWEST_LEAVES)
    products = min(max((left - d * least) // (d + 1), FEWEST_PRODUCTS), full.products)
    leaves = min(max((left - products * (d + 1)) // d, least), full.leaves)
    old = fixed._replace(leaves=leaves, products=products)
    fixed = fixed._replace(tree=0)
    left = max_nodes - _nodes(old, d) - _nodes(fixed, d)
    leaves = min(max(int(LEAVES * left) // d, FEWEST_LEAVES), full.leaves)
    products = min(max((left - d * leaves) // (d + 1), FEWEST_PRODUCTS), full.products)
    new = fixed._replace(leaves=leaves, products=products)
    fits = _nodes(old, d) + _nodes(new, d) <= max_nodes
    return (old, new) if fits or d > WIDE_STREAM else None


def is_tree_worthwhile(network: StackedNetwork) -> bool:
    """Whether the root weighs the tree more than the products, so that it can stay."""
    return network.tree is not None and bool(network.weight[-1] > network.weight[1])


def _nodes(sizes: Sizes, d: int) -> int:
    """Return the nodes of a network of the largest ``sizes``."""
    gaussians = N_BACKGROUND
    gaussians += sizes.gaussians + 1 if sizes.gaussians > 0 else 0
    sums_and_products = 2 + (sizes.products + 1) * (d + 1)
    return sums_and_products + d * (sizes.leaves + len(WIDE)) + gaussians + sizes.tree


def shrink(training: Training, sizes: Sizes) -> None:
    """Drop the tree, and merge leaves and products until ``sizes`` hold."""
    network, d = training.network, len(training.window)
    if network is None:
        return
    if sizes.tree == 0:
        training.drop_tree()
    if len(network.products.weight) > sizes.products:
        merge_products(network.products, sizes.products)
    if len(network.products.leaves.mean) > d * (sizes.leaves + len(WIDE)):
        merge_leaves(network.products, d * sizes.leaves)


def grow(training: Training, Z: FloatArray, rule: Rule) -> bool:
    """Plant a tree, and try products of full size, fitted to the sample; say if they are taken.

    They are, where they explain new columns ``Z`` (d, m) better than the present ones.
    """
    network, n = training.network, training.sample.shape[1]
    if network is None or n == 0:
        return False
    sample = training.sample.astype(np.float64)
    if rule.sizes.tree > 0 and network.tree is None:
        _plant(network, training, sample, rule)
    fresh = new_products(sample, n, rule)
    if fresh.log_densities(Z)[0][1].mean() <= network.products.log_densities(Z)[0][1].mean():
        return False
    scale = network.products.count.sum() / fresh.count.sum()
    fresh.count, fresh.leaf_count = scale * fresh.count, scale * fresh.leaf_count
    fresh.moments = scale * fresh.moments
    fresh.update()
    network.products = fresh
    return True


def _plant(network: StackedNetwork, training: Training, sample: FloatArray, rule: Rule) -> None:
    network.tree = Tree.grown(np.clip(sample, -CLIP, CLIP), rule.sizes.tree, rule.memory)
    network.weight = np.append((1.0 - NEW_TREE) * network.weight, NEW_TREE)
    training.history = np.empty((0, len(network.weight)))
