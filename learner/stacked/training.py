"""One-pass learning of a stacked network: a warm-up with rebuilding, then each record once."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.queries.scaling import Scaling

from . import renewal
from .background import N_BACKGROUND, Background
from .gaussians import GaussianMixture
from .leaves import Leaves
from .network import Evaluated, StackedNetwork
from .products import SharedProducts
from .replacement import Replacement
from .sizes import Sizes
from .standing import spare_strengths
from .tree import Tree
from .weights import MEMORY, fit_weights, gained

FloatArray = NDArray[np.float64]

SCALE_RECORDS = 240
"""Records from which on location and scale stay as they are."""

SHRINKAGE_RECORDS = 4096
"""Records after which the shrinkage of the Gaussians stays as it is."""

LEAST_GAIN, ERRORS = 0.01, 2.0
"""Nats that the tree must bring the latest records on average to stay after the warm-up, and
standard errors that this must be."""

SETTLED, LEAST_WEIGHT = 4096, 0.002
"""Records after which an expert of less than this weight learns some records only, and some
strengths of a wide background may be left out. The weight of an expert that no record needs is a
third of this."""

TURN, GOLDEN = 256, 0.6180339887498949
"""Records that are learned or left out together, and the step of the sequence that chooses. Its
fractions are evenly distributed (Weyl), whatever period the stream may have."""

RESTING = 0.25
"""Share of the records that an expert without weight learns."""

CLIP = 30.0
"""Deviations beyond which a value counts as much as there when Gaussians and the tree learn."""

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

PRODUCT_SEED, GAUSSIAN_SEED, SAMPLE_SEED = range(3)
"""What random numbers are drawn for."""


class Rule(NamedTuple):
    """How to learn: the most nodes of each kind, records to remember, seed of random numbers."""

    sizes: Sizes
    memory: float
    seed: int


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
    sample
        A uniform sample of the stream (d, n), from the end of the warm-up on.
    renewing
        Whether leaves were proposed at the last boundary.
    replacement
        New components for what nothing explains.
    """

    def __init__(self, d: int) -> None:
        self.network: StackedNetwork | None = None
        self.scaling = Scaling(d)
        self.n_records, self.built, self.renewing = 0, 0, False
        self.raw, self.window = np.empty((0, d)), np.empty((d, 0), np.float32)
        self.history = np.empty((0, 0))
        self.sample = np.empty((d, 0), np.float32)
        self.replacement = Replacement(d)

    def learn(self, X: FloatArray, rule: Rule, evaluated: Evaluated | None = None) -> None:
        """Learn one mini-batch (m, d); ``evaluated`` is what the network says of it, if known."""
        before = self.n_records
        self.n_records += len(X)
        self.scaling.learn(X)
        Z, _ = self.scaling.apply(X)
        if self.network is not None:
            evaluated = self._judge(self.network, Z, rule, evaluated)
        warming_up = before < rule.sizes.warm_up and self.window.shape[1] == before
        if warming_up:
            self._keep(X, Z)
        due = warming_up and self.n_records >= min(GROWTH * self.built, rule.sizes.warm_up)
        if self.network is None or evaluated is None or due:
            self._rebuild(Z, rule)
            return
        self._learn_once(self.network, Z, rule, evaluated)
        if not warming_up:
            self._look_ahead(Z, rule, evaluated, before)

    def _judge(
        self, network: StackedNetwork, Z: FloatArray, rule: Rule, evaluated: Evaluated | None
    ) -> Evaluated:
        """Let new columns judge what they have not shaped; return what the network says of them."""
        evaluated = evaluated or network.evaluate(Z)
        self.history = np.concatenate([self.history, evaluated.experts])[-MEMORY:]
        network.weight = fit_weights(network.weight, self.history)
        clipped = np.clip(Z, -CLIP, CLIP)
        changed = self._renew(network, Z, rule)
        if network.mixture is not None and self.n_records - Z.shape[1] < SHRINKAGE_RECORDS:
            changed |= network.mixture.choose(clipped)
        changed |= self.replacement.judge(network, Z, clipped)
        return network.evaluate(Z) if changed else evaluated

    def _renew(self, network: StackedNetwork, Z: FloatArray, rule: Rule) -> bool:
        if not self.renewing:
            return False
        self.renewing = False
        sample = self.sample.astype(np.float64)
        fresh = renewal.propose(sample, rule.sizes)
        return renewal.adopt(network.products, fresh, Z, sample)

    def _keep(self, X: FloatArray, Z: FloatArray) -> None:
        """Keep a mini-batch of the warm-up."""
        if self.built < SCALE_RECORDS:
            self.raw = np.concatenate([self.raw, X])
        self.window = np.concatenate([self.window, single(Z)], axis=1)

    def _rebuild(self, new: FloatArray, rule: Rule) -> None:
        """Build the network from all records so far, the last ones of which are ``new`` (d, m).

        The tree grows on, but where units change. At the end of the warm-up it goes if it brings
        nothing, and its nodes go to more products.
        """
        if self.n_records >= rule.sizes.warm_up and not self._needs_tree():
            self.drop_tree()
            rule = rule._replace(sizes=rule.sizes.without_tree(len(self.window)))
        n, old = self.n_records, self.network
        rescaled = self.built < SCALE_RECORDS
        if rescaled:
            self.scaling = Scaling(len(self.window))
            self.scaling.learn(self.raw)
            self.window = single(self.scaling.apply(self.raw)[0])
        self.built = n
        if n >= SCALE_RECORDS:
            self.raw = self.raw[:0]
        Z = self.window.astype(np.float64)
        products, mixture, clipped = new_products(Z, n, rule), None, np.clip(Z, -CLIP, CLIP)
        if rule.sizes.gaussians > 0:
            mixture = _new_mixture(clipped, n, rule, old.mixture if old else None)
        background = Background(len(Z))
        background.learn(clipped, 0.0)
        tree = old.tree if old and not rescaled else None
        if tree is not None:
            tree.learn(np.clip(new, -CLIP, CLIP))
        elif rule.sizes.tree > 0:
            tree = Tree.grown(clipped, rule.sizes.tree, rule.memory)
        n_experts = 2 + (mixture is not None) + N_BACKGROUND + (tree is not None)
        same = old is not None and len(old.weight) == n_experts
        weight = old.weight if old and same else np.full(n_experts, 1.0 / n_experts)
        self.network = StackedNetwork(products, mixture, background, tree, weight)
        if not same:
            self.history = np.empty((0, n_experts))

    def _needs_tree(self) -> bool:
        """Whether the latest records would be less likely without the tree, if there is one."""
        network = self.network
        if network is None or network.tree is None:
            return True
        gain = gained(network.weight, self.history, [-1])
        return bool(gain.mean() > max(LEAST_GAIN, ERRORS * gain.std() / len(gain) ** 0.5))

    def drop_tree(self) -> None:
        """Take the tree, if there is one, from the root."""
        if self.network is not None and self.network.tree is not None:
            self.network.drop_tree()
            self.history = self.history[:, :-1].copy()

    def _learn_once(
        self, network: StackedNetwork, Z: FloatArray, rule: Rule, evaluated: Evaluated
    ) -> None:
        """Learn each of the new columns once; products and Gaussians without weight learn some.

        The tree learns all, as what it grows from a few records may take long to have weight.
        """
        clipped, weight = np.clip(Z, -CLIP, CLIP), network.weight
        m, before = Z.shape[1], self.n_records - Z.shape[1]
        place = before // TURN * GOLDEN % 1.0
        share = self.share_learned(before, weight[:2].max())
        if place < share:
            network.products.learn(Z, evaluated.products, _kept(m / share, rule))
        if network.tree is not None:
            network.tree.learn(clipped)
        if network.mixture is not None:
            share = self.share_learned(before, weight[2])
            if place < share:
                network.mixture.learn(clipped, evaluated.gaussians, _kept(m / share, rule))
        if network.background.take_in(clipped, _kept(m, rule)):
            if before >= SETTLED:
                spare_strengths(network, self.history)
            network.background.change()

    def share_learned(self, before: int, weight: float) -> float:
        """Return the share of records that an expert of this ``weight`` learns."""
        return RESTING if before >= SETTLED and weight < LEAST_WEIGHT else 1.0

    def _look_ahead(self, Z: FloatArray, rule: Rule, evaluated: Evaluated, before: int) -> None:
        """Take in what new leaves and components are proposed from."""
        self._end_warm_up()
        rng = np.random.default_rng([rule.seed, SAMPLE_SEED, before])
        renewal.add_to_sample(self.sample, single(Z), before, rule.memory, rng)
        self.renewing = renewal.is_due(self.n_records, Z.shape[1])
        self.replacement.collect(Z, evaluated.log_density, CLIP)

    def _end_warm_up(self) -> None:
        """Turn the kept records into a sample of the stream."""
        n = self.window.shape[1]
        if n > 0:
            size = min(n, renewal.sample_size(len(self.window)))
            places = np.linspace(0, n - 1, size).astype(np.int64)
            self.sample, self.window = self.window[:, places].copy(), self.window[:, :0]
            self.raw = self.raw[:0]


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
