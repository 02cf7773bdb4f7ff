"""One-pass learning of a stacked network of some size: a warm-up, then each record once."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.density.gaussian_mixture import GaussianMixture
from faust_oslrau.learner.queries.scaling import Scaling

from .background import N_BACKGROUND, Background
from .leaves import MOST_LEAVES, WIDE, Leaves
from .network import MEMORY, Evaluated, StackedNetwork, fit_weights
from .products import SharedProducts

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

SCALE_RECORDS = 240
"""Records from which on location and scale stay as they are."""

SHRINKAGE_RECORDS = 4096
"""Records after which the shrinkage of the Gaussians stays as it is."""

SETTLED, LEAST_WEIGHT = 4096, 0.002
"""Records after which an expert of less than this weight learns some records only. The weight of an
expert that no record needs is a third of this."""

TURN, GOLDEN = 256, 0.6180339887498949
"""Records that are learned or left out together, and the step of the sequence that chooses. Its
fractions are evenly distributed (Weyl), whatever period the stream may have."""

RESTING = 0.25
"""Share of the records that an expert without weight learns."""

CLIP = 30.0
"""Deviations beyond which a value counts as much as there when Gaussians learn."""

LARGEST_KEPT = 1e30
"""Standardised value that any larger one is kept as."""

GROWTH = 1.5
"""Factor by which the records of the warm-up grow from one building of the network to the next."""

RECORDS_PER_PRODUCT = 14

RECORDS_PER_LEAF = 8

FEWEST_LEAVES = 4
"""Of a variable, with the first records."""

SWEEPS, LATE_SWEEPS, LATE = 8, 4, 2000
"""Steps of EM over the kept records where the network is rebuilt, and from ``LATE`` records on.
Stopping early is a part of the regularisation: 20 steps overfit."""

PRODUCT_SEED, GAUSSIAN_SEED = range(2)
"""What random numbers are drawn for."""


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


class Rule(NamedTuple):
    """How to learn: the most nodes of each kind, records to remember, seed of random numbers.

    Of two networks, one goes after ``retire_after`` records; None for no challengers.
    """

    sizes: Sizes
    memory: float
    seed: int
    retire_after: int | None = None


class Training:
    """A network, and what learning needs beside it.

    Attributes
    ----------
    network
        The network, in standardised units.
    scaling
        Location and scale of each variable.
    n_records
        Records learned so far.
    built
        Records that the network was last built from.
    raw
        Records (n, d) in original units, while location and scale may change.
    window
        The same in standardised units (d, n), until the warm-up ends.
    history
        The latest log-densities of the experts (n, E).
    """

    def __init__(self, d: int) -> None:
        self.network: StackedNetwork | None = None
        self.scaling = Scaling(d)
        self.n_records, self.built = 0, 0
        self.raw, self.window = np.empty((0, d)), np.empty((d, 0), np.float32)
        self.history = np.empty((0, 0))

    @property
    def n_variables(self) -> int:
        """Number d of variables."""
        return len(self.window)

    def learn(self, X: FloatArray, rule: Rule, evaluated: Evaluated | None = None) -> None:
        """Learn one mini-batch (m, d); ``evaluated`` is what the network says of it, if known."""
        before = self.n_records
        self.n_records += len(X)
        self.scaling.learn(X)
        Z, _ = self.scaling.apply(X)
        if self.network is not None:
            evaluated = self._judge(self.network, Z, evaluated)
        warming_up = before < rule.sizes.warm_up and self.window.shape[1] == before
        if warming_up:
            self._keep(X, Z)
        due = warming_up and self.n_records >= min(GROWTH * self.built, rule.sizes.warm_up)
        if self.network is None or evaluated is None or due:
            self._rebuild(rule)
            return
        self._learn_once(self.network, Z, rule, evaluated)
        if not warming_up:
            self.window, self.raw = self.window[:, :0], self.raw[:0]

    def _judge(
        self, network: StackedNetwork, Z: FloatArray, evaluated: Evaluated | None
    ) -> Evaluated:
        """Let new columns judge what they have not shaped; return what the network says of them."""
        evaluated = evaluated or network.evaluate(Z)
        self.history = np.concatenate([self.history, evaluated.experts])[-MEMORY:]
        network.weight = fit_weights(network.weight, self.history)
        if network.mixture is None or self.n_records - Z.shape[1] >= SHRINKAGE_RECORDS:
            return evaluated
        changed = network.mixture.choose(np.clip(Z, -CLIP, CLIP))
        return network.evaluate(Z) if changed else evaluated

    def _keep(self, X: FloatArray, Z: FloatArray) -> None:
        """Keep a mini-batch of the warm-up."""
        if self.built < SCALE_RECORDS:
            self.raw = np.concatenate([self.raw, X])
        self.window = np.concatenate([self.window, single(Z)], axis=1)

    def _rebuild(self, rule: Rule) -> None:
        """Build the network from all records so far."""
        n, old = self.n_records, self.network
        if self.built < SCALE_RECORDS:
            self.scaling = Scaling.of_rows(self.raw)
            self.window = single(self.scaling.apply(self.raw)[0])
        self.built = n
        if n >= SCALE_RECORDS:
            self.raw = self.raw[:0]
        Z = self.window.astype(np.float64)
        products, mixture, clipped = new_products(Z, n, rule), None, np.clip(Z, -CLIP, CLIP)
        if rule.sizes.gaussians > 0:
            mixture = _new_mixture(clipped, n, rule, old.mixture if old else None)
        background = Background(len(Z))
        background.learn(clipped, 1.0)
        n_experts = 2 + (mixture is not None) + N_BACKGROUND
        same = old is not None and len(old.weight) == n_experts
        weight = old.weight if old and same else np.full(n_experts, 1.0 / n_experts)
        self.network = StackedNetwork(products, mixture, background, weight)
        if not same:
            self.history = np.empty((0, n_experts))

    def _learn_once(
        self, network: StackedNetwork, Z: FloatArray, rule: Rule, evaluated: Evaluated
    ) -> None:
        """Learn each of the new columns once; products and Gaussians without weight learn some."""
        clipped, weight = np.clip(Z, -CLIP, CLIP), network.weight
        m, before = Z.shape[1], self.n_records - Z.shape[1]
        place = before // TURN * GOLDEN % 1.0
        share = self.share_learned(before, weight[:2].max())
        if place < share:
            network.products.learn(Z, evaluated.products, _kept(m / share, rule))
        if network.mixture is not None:
            share = self.share_learned(before, weight[2])
            if place < share:
                network.mixture.learn(clipped, evaluated.gaussians, _kept(m / share, rule))
        network.background.learn(clipped, _kept(m, rule))

    def share_learned(self, before: int, weight: float) -> float:
        """Return the share of records that an expert of this ``weight`` learns."""
        return RESTING if before >= SETTLED and weight < LEAST_WEIGHT else 1.0


def single(Z: FloatArray) -> NDArray[np.float32]:
    """Return values that are kept, in half the room; none becomes infinite by it."""
    return np.clip(Z, -LARGEST_KEPT, LARGEST_KEPT).astype(np.float32)


def _kept(m: float, rule: Rule) -> float:
    """Return what is left of the weight of earlier records after ``m`` more of them."""
    return math.exp(-m / rule.memory)


def new_products(Z: FloatArray, n: int, rule: Rule) -> SharedProducts:
    """Fit products to the columns of ``Z`` (d, n)."""
    n_products = max(1, min(rule.sizes.products, n // RECORDS_PER_PRODUCT))
    most = FEWEST_LEAVES + n // RECORDS_PER_LEAF
    leaves = Leaves.of_sample(Z.T, rule.sizes.leaves, most, rule.sizes.quantiles)
    products = SharedProducts(leaves, n_products)
    products.seed(Z, np.random.default_rng([rule.seed, PRODUCT_SEED, n]))
    for _ in range(_sweeps(n)):
        products.learn(Z, products.log_densities(Z)[1], 0.0)
    return products


def _new_mixture(Z: FloatArray, n: int, rule: Rule, old: GaussianMixture | None) -> GaussianMixture:
    """Fit Gaussians to the columns of ``Z`` (d, n), with the shrinkage of the ``old`` ones."""
    n_components = max(1, min(rule.sizes.gaussians, n // (len(Z) + 8), n // 2))
    rng = np.random.default_rng([rule.seed, GAUSSIAN_SEED, n])
    mixture = GaussianMixture.of_seeds(Z, n_components, rng, old)
    for _ in range(_sweeps(n)):
        mixture.learn(Z, mixture.log_density(Z)[1], 0.0)
    return mixture


def _sweeps(n: int) -> int:
    return SWEEPS if n < LATE else LATE_SWEEPS
