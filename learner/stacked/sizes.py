"""How many leaves, products and Gaussians a network has: by the number of variables alone."""

from __future__ import annotations

from typing import NamedTuple

from .leaves import MOST_LEAVES, WIDE

WIDEST_MIXTURE = 128
"""Most variables of several full-covariance Gaussians, whose costs grow with their square."""

FEWEST_PRODUCTS, MOST_PRODUCTS = 4, 48

MOST_QUANTILES, FEWEST_QUANTILES = 6144, 24
"""Leaves at quantiles: a variable has this many over the square of the number of variables, and at
least 24. More of them see more detail, but the weights of few are known better, and the more
variables there are, the more weights are uncertain together."""

GAUSSIAN_PARAMETERS = 24_000
"""Of all Gaussians of the mixture together."""

MOST_GAUSSIANS, MOST_OF_FEW, FEW = 40, 100, 8
"""Gaussians of the mixture, and those of few variables, which cost less."""

NODES_PER_GAUSSIAN = 20
"""So that small budgets leave room for other nodes."""

WARM_UPS = {4080: 11, 2032: 50}
"""Records after which the warm-up ends, and the most variables for which their building takes a
tenth of a second."""

SHORTEST_WARM_UP = 1008
"""Records after which it ends for more variables."""


class Sizes(NamedTuple):
    """The most of each kind, and the length of the warm-up in records.

    ``leaves`` are means over the variables, without the wide ones. ``quantiles`` are those of a
    variable that are not at frequent values.
    """

    leaves: int
    quantiles: int
    products: int
    gaussians: int
    warm_up: int


def sizes(d: int, max_nodes: int, memory: float | None) -> Sizes:
    """Share out the nodes: half of them to the leaves, what is left to the sums of the products.

    Beyond some 120 variables 6 leaves a variable and 4 products take more than 2,000 nodes.
    """
    leaves = _within(max_nodes // (2 * d) - len(WIDE), 6, MOST_LEAVES)
    quantiles = max(MOST_QUANTILES // d**2, FEWEST_QUANTILES)
    parameters = d * (d + 1) // 2 + d + 1
    most = min(MOST_OF_FEW if d <= FEW else MOST_GAUSSIANS, max_nodes // NODES_PER_GAUSSIAN)
    gaussians = _within(GAUSSIAN_PARAMETERS // parameters, min(3, most), most)
    left = max_nodes - 20 - d * (leaves + len(WIDE) + 1) - gaussians
    products = _within(left // (d + 1), FEWEST_PRODUCTS, MOST_PRODUCTS)
    warm_up = next((n for n, most in WARM_UPS.items() if d <= most), SHORTEST_WARM_UP)
    if memory is not None:
        warm_up = min(warm_up, max(SHORTEST_WARM_UP, int(memory / 2)))
    gaussians = gaussians if d <= WIDEST_MIXTURE else 0
    return Sizes(leaves, quantiles, products, gaussians, warm_up)


def _within(value: int, least: int, most: int) -> int:
    return max(least, min(most, value))
