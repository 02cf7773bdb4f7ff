"""A network with univariate leaves as the mixture of diagonal Gaussians that it stands for."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from faust_oslrau.learner import Network
from faust_oslrau.learner.network.layout import LEAF, SUM


class Component(NamedTuple):
    """One diagonal Gaussian: means and variances by variable."""

    weight: float
    means: dict[int, float]
    variances: dict[int, float]


def components_of(
    network: Network, variables: Collection[int], node: int | None = None
) -> list[Component]:
    """Expand a node, or the whole network, with all other variables integrated out."""
    i = network.root if node is None else node
    kind = network.nodes[i]["kind"]
    if not set(network.scope(i).tolist()) & set(variables):
        return [Component(1.0, {}, {})]
    if kind == LEAF:
        (v,) = network.scope(i).tolist()
        mean, variance = network.nodes[i]["mean"], network.nodes[i]["variance"]
        return [Component(1.0, {v: float(mean)}, {v: float(variance)})]
    children = [
        (components_of(network, variables, child), weight) for child, weight in network.children(i)
    ]
    if kind == SUM:
        total = sum(weight for _, weight in children)
        return [
            c._replace(weight=c.weight * weight / total) for part, weight in children for c in part
        ]
    product = [Component(1.0, {}, {})]
    for part, _ in children:
        product = [combine(a, b) for a in product for b in part]
    return product


def combine(a: Component, b: Component) -> Component:
    return Component(a.weight * b.weight, a.means | b.means, a.variances | b.variances)
