"""What is usual for an entity beyond its levels and scales: how its fields go together."""

from __future__ import annotations

from copy import copy
from typing import ClassVar, NamedTuple

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray, IntArray, Mask
from faust_oslrau.learner.protocol import Measured, Predictive, Which
from faust_oslrau.learner.scoring.tails import log_mass
from faust_oslrau.learner.state import MOST_RECORDS
from faust_oslrau.learner.state_schema import Entry
from faust_oslrau.learner.stored import SLOTS, Places, Stored

from .habit_kernels import DENSITIES, Own, Predicted, Shared, mix
from .kinds import MEMORY, MOST, Kinds
from .levels import LARGEST_VALUE
from .mixed_density import MixedDensity, Sampled

WIDEST = 32
"""Most fields: the size of an entity's covariance grows with their square."""


class Mixed(NamedTuple):
    """The mixed density of rows in place of the network's: a `Measured`.

    Attributes
    ----------
    log_density
        Log-density of each row (m,) in nats.
    log_mass
        Logarithm (m,) of the mass of Student's t of the entity that lies further out than the row.
    """

    log_density: FloatArray
    log_mass: FloatArray


class Habits(Stored):
    """Mixes the network's density with kinds of records and a covariance of each entity.

    Begins with the first kinds, after 240 usual records; until then the network's density is all
    there is. Rows have ``WIDEST`` fields at the most. Statistics of an entity change with each of
    its records; what entities share changes in ``learn`` alone, at learning boundaries.
    """

    schema: ClassVar = {
        "_ages": Entry((SLOTS,), 0.0, MOST_RECORDS, "<f4"),
        "_known": Entry((SLOTS,), 0.0, MOST_RECORDS, "<f4"),
        "_weights": Entry((SLOTS, DENSITIES), 0.0, dtype="<f4"),
        "_records": Entry((SLOTS, MOST), 0.0, MOST_RECORDS, "<f4"),
        "_products": Entry((SLOTS, "p"), -LARGEST_VALUE, LARGEST_VALUE, "<f4"),
        "_common": Entry((DENSITIES,), 0.0),
        "_shares": Entry(("s", "K"), 0.0),
        "_new_common": Entry((DENSITIES,), 0.0),
    }
    prefix = "habit_"

    def __init__(self) -> None:
        self._kinds = Kinds()
        self._ages, self._known = np.empty((2, 0), np.float32)
        self._weights = np.empty((0, DENSITIES), np.float32)
        self._records = np.empty((0, MOST), np.float32)
        self._products = np.empty((0, 0), np.float32)
        self._shared: Shared | None = None
        self._common, self._new_common = np.zeros((2, DENSITIES))
        self._shares = np.empty((0, 0))
        self._predicted: Predicted | None = None

    def mix(
        self, rows: FloatArray, slots: IntArray, fresh: Mask, network: Measured, room: int
    ) -> Measured:
        """Return the density of the next rows (m, d), and add these to their entities.

        Of the entities ``slots`` (m,), nothing is known where they are ``fresh`` (m,). ``network``
        has the log-densities of these rows by the network; there is ``room`` for so many entities.
        """
        if self._shared is None or self._kinds.mixture is None:
            return network
        m, d = rows.shape
        if len(self._ages) < room:
            self.reserve(room, p=d * (d + 1) // 2)
        gaussians = self._kinds.mixture.gaussians
        log_kinds = np.ascontiguousarray(gaussians.log_densities(np.ascontiguousarray(rows.T)).T)
        predicted = _unfilled(m, *self._shared.second_moment.shape)
        own = Own(self._ages, self._known, self._weights, self._records, self._products)
        mix(
            rows, slots, fresh, network.log_density, log_kinds,
            own, self._shared, self._new_common, predicted,
        )  # fmt: skip
        self._predicted = predicted
        K = log_kinds.shape[1]
        self._shares = np.concatenate([self._shares.reshape(-1, K), predicted.shares])
        further_out = log_mass(predicted.distance[None], np.ones(1), rows)
        return Mixed(predicted.log_density, further_out)

    def ahead(self, slots: IntArray) -> Habits:
        """Return habits in which each of some entities (m,) has a slot of its own, in their order.

        They share what all entities share, and are good for one call of ``mix``.
        """
        found = copy(self)
        found.end_batch()
        if len(self._ages) > 0:
            for name, _ in self._of_slots():
                setattr(found, name, getattr(self, name)[slots])
        return found

    def conditionals(self, network: Predictive, which: Which) -> Predictive:
        """Return the densities of some of the rows (m,) that were mixed last."""
        mixed = self._mixed(network)
        return network if mixed is None else mixed.of(which)

    def draw(
        self, network: Sampled, row: FloatArray, n: int, rng: np.random.Generator
    ) -> FloatArray:
        """Draw ``n`` rows (n, d) with the observed fields of ``row`` (d,), which was mixed last."""
        mixed = self._mixed(network)
        if mixed is None:
            return network.sample(n, given=row, random_state=rng)
        return mixed.draw(network, row, n, rng)

    def _mixed(self, network: Predictive) -> MixedDensity | None:
        """Return the densities of the rows that were mixed last; None if none were."""
        if self._kinds.mixture is None or self._predicted is None:
            return None
        return MixedDensity(network, self._kinds.mixture.gaussians, self._predicted)

    def learn(self, rows: FloatArray, usual: Mask) -> None:
        """End a learning batch of ``rows`` (m, d): learn the ``usual`` ones (m,)."""
        shares = np.empty((len(rows), 0)) if self._shared is None else self._shares
        if self._kinds.learn(rows[usual], shares[usual]):
            self._records[:] = 0.0
        fading = np.exp(-self._new_common.sum() / MEMORY)
        self._common = self._common * fading + self._new_common
        self._share()

    def end_batch(self) -> None:
        """Forget what the records since the last boundary said, learned or not."""
        self._new_common, self._shares = np.zeros(DENSITIES), np.empty((0, 0))

    @property
    def has_begun(self) -> bool:
        """Whether densities are mixed."""
        return self._shared is not None

    def _share(self) -> None:
        """Set what all entities share."""
        mixture = self._kinds.mixture
        if mixture is None:
            return
        common = self._common + 1.0  # Laplace's rule: none is certain before it failed
        mean = mixture.gaussians.mean
        i, j = np.tril_indices(mean.shape[1])
        moment = mixture.covariances(mean)[:, i, j] + mean[:, i] * mean[:, j]
        self._shared = Shared(mixture.weight, moment, common / common.sum())

    def kinds_of(self, slots: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the records (k, K) of each kind that entities have, and the kinds' weights (K,).

        Those of a single kind if there are no kinds.
        """
        if self._shared is None or len(self._records) == 0:
            return np.zeros((len(slots), 1)), np.ones(1)
        weight = self._shared.weight
        return self._records[slots, : len(weight)].astype(float), weight

    def add_fields(self, places: Places) -> None:
        """Make room for more fields: independent of the others, with a variance of 1."""
        self._kinds.add_fields(places)
        self._share()
        if self._products.size > 0:
            high, low = np.tril_indices(places.n)
            products = np.tile((high == low).astype(np.float32), (len(self._products), 1))
            is_old = np.isin(high, places.old) & np.isin(low, places.old)
            products[:, is_old] = self._products
            self._products = products

    def state(self, slots: int | None = None) -> Arrays:
        """Return all that ``restore`` needs, of so many entities, as arrays."""
        return self._kinds.state() | super().state(slots)

    def restore(self, arrays: Arrays, d: int, k: int, scored: int) -> None:
        """Restore a state; StateError if it cannot be one.

        Of rows with ``d`` fields and ``k`` entities; ``scored`` rows wait for the next boundary.
        """
        self._kinds.restore(arrays, d)
        mixture, sizes = self._kinds.mixture, {"slots": 0, "p": 0, "s": 0, "K": 0}
        if len(arrays["habit_ages"]) > 0:
            sizes |= {"slots": k, "p": d * (d + 1) // 2}
        if mixture and scored:
            sizes |= {"s": scored, "K": len(mixture.count)}
        self.read_state(arrays, **sizes)
        self._share()


def _unfilled(m: int, K: int, products: int) -> Predicted:
    weight, covariance = np.empty((m, DENSITIES)), np.empty((m, products))
    log_density, freedom, distance = np.empty((3, m))
    kind_weight, shares = np.empty((2, m, K))
    return Predicted(log_density, weight, kind_weight, covariance, freedom, distance, shares)
