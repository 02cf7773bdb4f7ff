"""Entities as a whole: what is known of each, held against what is known of all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, polygamma

from faust_oslrau.learner.arrays import FloatArray, IntArray
from faust_oslrau.learner.scoring.entity_events import EntityProfile

from .habits import Habits
from .levels import B0, COUNT, LOCATION, M0, MEMORY, NU, SCALE, SQUARES, TAU2, predict
from .population import SMALLEST_VARIANCE
from .watch import Watch

Slots = IntArray

FEWEST = 16.0
"""Values of a field from which on an entity's level and spread of it are compared; and records from
which on its weights of the kinds are."""

FEWEST_RECORDS = 64.0
"""Records of an entity from which on it is held against the others."""


class Known(NamedTuple):
    """Statistics of all entities, by their slots.

    Attributes
    ----------
    means, statistics, population, reference
        As `levels.standardise` has them.
    habits
        Has the records of each kind.
    """

    means: FloatArray
    statistics: NDArray[np.float32]
    population: FloatArray
    reference: FloatArray
    habits: Habits


def compare(watch: Watch, known: Known, slots: Slots) -> None:
    """Learn from some entities (k,) how unusual entities are."""
    watch.compare(_deviations(known, _with_records(known, slots)))


def judge(watch: Watch, known: Known, largest: float) -> None:
    """Tell which of the latest entities became unusual, up to the ``largest`` p-value, or usual."""
    slots = _with_records(known, np.array(list(watch.latest), np.int64))
    found = _deviations(known, slots)
    for at in watch.judge(slots, found, largest):
        watch.tell(int(slots[at]), found[at], *levels_and_deviations(known, int(slots[at])))


def levels_and_deviations(known: Known, slot: int) -> tuple[FloatArray, FloatArray]:
    """Return levels and standard deviations (2, d) of an entity, and of the middle of all.

    In units of the rows that the layer is given.
    """
    location, scale = known.reference
    own, like = known.statistics[slot].astype(np.float64), known.population
    deviation = np.sqrt(own[:, SQUARES] / np.maximum(own[:, COUNT] - 1.0, 1.0))
    values = np.stack([location + scale * known.means[slot], scale * deviation])
    return values, np.stack([location + scale * like[M0], scale * np.sqrt(like[TAU2])])


def profile(watch: Watch, known: Known, slot: int) -> EntityProfile:
    """Return what is known of an entity; ``watch`` says how unusual it is."""
    values, usual = levels_and_deviations(known, slot)
    found = _deviations(known, np.array([slot]))
    is_known = len(_with_records(known, np.array([slot]))) > 0
    p_value = watch.p_value(found).item() if is_known else np.nan
    aspects = watch.aspects(found[0], values, usual)
    expected, deviation = _next(known, slot)
    count = known.statistics[slot, :, COUNT].astype(np.float64)
    return EntityProfile(
        count, values[0], values[1], usual[0], usual[1], expected, deviation, p_value, aspects
    )


def _next(known: Known, slot: int) -> tuple[FloatArray, FloatArray]:
    """Return location and scale (d,) of the entity's next record, as `levels.predict` has them."""
    location, scale = known.reference
    units = np.empty((len(location), 3))
    for v in range(len(units)):
        predict(known.means[slot, v], known.statistics[slot, v], known.population, v, units[v])
    return location + scale * units[:, LOCATION], scale * units[:, SCALE]


def _with_records(known: Known, slots: Slots) -> Slots:
    """Return the entities that have enough records."""
    most = known.statistics[slots, :, COUNT].max(axis=1, initial=0.0)
    found: Slots = slots[most >= FEWEST_RECORDS]
    return found


def _deviations(known: Known, slots: Slots) -> FloatArray:
    kinds, weight = known.habits.kinds_of(slots)
    return deviations(known.means[slots], known.statistics[slots], known.population, kinds, weight)


def deviations(
    mean: FloatArray,
    statistics: NDArray[np.float32],
    population: FloatArray,
    kinds: FloatArray,
    weight: FloatArray,
) -> FloatArray:
    """Return how far entities are from the others (k, 2 d + 1), in standard deviations of these.

    The levels of the d fields come first, then their spreads, then the kinds; 0 where too little is
    known. ``mean`` (k, d), ``statistics`` (k, d, 2) and ``population`` (5, d) are those of
    `levels`; ``kinds`` (k, K) are the entities' records of each kind, ``weight`` (K,) the weights
    of the kinds among all records.
    """
    count, squares = (statistics[:, :, at].astype(np.float64) for at in (COUNT, SQUARES))
    known = count >= FEWEST
    freedom = np.where(known, count - 1.0, FEWEST)
    nu, tau2 = population[NU], population[TAU2]
    variance = (nu * tau2 + squares) / (nu + freedom)
    noise = variance / np.minimum(freedom, population[MEMORY])
    level = (mean - population[M0]) / np.sqrt(population[B0] + noise)
    logarithm = np.log(np.maximum(squares / freedom, SMALLEST_VARIANCE) / tau2)
    # mean and variance of the logarithm of chi-square over its degrees of freedom; a series for
    # those of the entities, which are many
    bias = digamma(nu / 2.0) - np.log(nu / 2.0) + 1.0 / freedom
    chance = polygamma(1, nu / 2.0) + 2.0 / freedom + 2.0 / freedom**2
    spread = (logarithm + bias) / np.sqrt(chance)
    found = [np.where(known, level, 0.0), np.where(known, spread, 0.0)]
    return np.column_stack([*found, kinds_deviance(kinds, weight)])


def kinds_deviance(kinds: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the root (k,) of the deviance of the entities' kinds from those of all records."""
    total = kinds.sum(axis=1)
    share = kinds / np.maximum(total, 1.0)[:, None]
    usual = np.maximum(weight, 1e-6)
    ratio = np.where(share > 0.0, share, usual) / usual
    deviance = 2.0 * total * (share * np.log(ratio)).sum(axis=1)
    return np.where(total >= FEWEST, np.sqrt(np.maximum(deviance, 0.0)), 0.0)
