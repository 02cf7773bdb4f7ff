"""The entities of several partitions as those of one, for the mixture of their networks.

States are those of `Entities.state`, the largest first. All is taken to its units: levels are in
units of its stream, rows in Gaussian units times its frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import memory, population
from .former import FormerEntities
from .habit_kernels import FIRST_KIND
from .kinds import MOST, STARTS, Kinds
from .layer import SAMPLED
from .levels import FRAME, LOCATION, MEMORY, SCALE, SQUARES, predict
from .roster import Key, keys_of, packed_keys

Arrays = dict[str, NDArray[Any]]
FloatArray = NDArray[np.float64]


class Entity(NamedTuple):
    """An entity of one of several states: its key, the state, its slot, the records since then."""

    key: Key
    state: int
    slot: int
    age: int


def merge_entities(states: Sequence[Arrays], limit: int, former_limit: int) -> Arrays:
    """Return the state of all entities together; the longest unseen beyond ``limit`` give way.

    What is known of an entity in several states is that of the state in which it was seen last.
    Scores of entities are in units of their own state: those of the others begin anew. ``limit``
    and ``former_limit`` are the most entities, and the most of which levels are kept.
    """
    first, d = states[0], states[0]["entity_reference"].shape[1]
    levels, statistics = zip(*(_levels(state, first) for state in states), strict=True)
    shares = [np.eye(len(first["kinds_count"]))]
    shares += [_shares(first, state, frame_factor(state, first)) for state in states[1:]]
    every = _united(states)
    kept, gone = every[:limit], every[limit:]
    former = _former(states, kept, former_limit)
    for entity in reversed(gone):
        at = entity.state, entity.slot
        former.add(entity.key, levels[at[0]][at[1]], statistics[at[0]][at[1]])
    keys, lengths = packed_keys([entity.key for entity in kept])
    merged = {
        **first,
        **_kinds(states, shares),
        **former.state(),
        "entity_keys": keys,
        "entity_key_lengths": lengths,
        "entity_ages": np.arange(1, len(kept) + 1),
        "entity_levels": _of(kept, levels),
        "entity_statistics": _of(kept, statistics),
        "entity_followed": np.zeros((min(len(kept), memory.FOLLOWED), d, 5)),
        "entity_losses": np.sum([state["entity_losses"] for state in states], axis=0),
        "entity_scores": _of(kept, [_scores(state, first) for state in states]),
    }
    merged["entity_population"] = _population(merged)
    if len(first["habit_entities"]) > 0:
        factors = [frame_factor(state, first) for state in states]
        parts = [_habits(*part) for part in zip(states, shares, factors, strict=True)]
        counts, products = zip(*parts, strict=True)
        merged["habit_entities"] = _of(kept, counts)
        merged["habit_products"] = _of(kept, products)
    for name in ("habit_by_age", "habit_strengths"):
        merged[name] = np.sum([state[name] for state in states], axis=0)
    return merged


def frame_factor(state: Arrays, first: Arrays) -> FloatArray:
    """Return by what rows in units of a state's entities are multiplied (d,) for the first one."""
    factor: FloatArray = first["entity_population"][FRAME] / state["entity_population"][FRAME]
    return factor


def _united(states: Sequence[Arrays]) -> list[Entity]:
    """Return each entity once, the one that was seen last first."""
    every = [
        Entity(key, number, slot, age)
        for number, state in enumerate(states)
        for slot, (key, age) in enumerate(
            zip(
                keys_of(state, "entity_key"),
                state["entity_ages"].tolist(),
                strict=True,
            )
        )
    ]
    every.sort(key=lambda entity: (entity.age, entity.state))
    found: dict[Key, Entity] = {}
    for entity in every:
        found.setdefault(entity.key, entity)
    return list(found.values())


def _of(kept: Sequence[Entity], columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the rows of some entities from those of each state."""
    starts = np.cumsum([0, *(len(column) for column in columns)])
    rows = [int(starts[entity.state]) + entity.slot for entity in kept]
    return np.concatenate(columns)[rows]


def _levels(state: Arrays, first: Arrays) -> tuple[FloatArray, NDArray[np.float32]]:
    return _moved(state["entity_levels"], state["entity_statistics"], state, first)


def _moved(
    means: FloatArray, statistics: NDArray[np.float32], state: Arrays, first: Arrays
) -> tuple[FloatArray, NDArray[np.float32]]:
    """Return means (k, d) and statistics (k, d, 2) of levels in units of the first stream."""
    (location, scale), (to, unit) = state["entity_reference"], first["entity_reference"]
    moved = statistics.copy()
    moved[..., SQUARES] *= (scale / unit) ** 2
    return means * (scale / unit) + (location - to) / unit, moved


def _former(states: Sequence[Arrays], kept: Sequence[Entity], former_limit: int) -> FormerEntities:
    """Return the former entities of all, in units of the first: its own ones gave way last."""
    former, known = FormerEntities(former_limit), {entity.key for entity in kept}
    for state in reversed(states):
        keys = keys_of(state, "former_key")
        if not keys:
            continue
        levels = _moved(state["former_levels"], state["former_statistics"], state, states[0])
        for key, means, statistics in zip(keys, *levels, strict=True):
            if key not in known:
                former.add(key, means, statistics)
    return former


def _scores(state: Arrays, first: Arrays) -> FloatArray:
    scores: FloatArray = state["entity_scores"]
    return scores if state is first else np.zeros_like(scores)


def _population(merged: Arrays) -> FloatArray:
    """Return what all entities are like; the frame stays, as the network's units do."""
    before, k = merged["entity_population"], len(merged["entity_levels"])
    some = np.arange(min(k, SAMPLED)) * k // min(k, SAMPLED)
    found = population.estimate(
        merged["entity_levels"][some], merged["entity_statistics"][some], before
    )
    found[MEMORY] = memory.best_memory(merged["entity_losses"])
    found[FRAME] = before[FRAME]
    return found


def _habits(
    state: Arrays, shares: FloatArray, factor: FloatArray
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return counts and products of a state's entities, with records of the first one's kinds."""
    k, d = state["entity_levels"].shape
    counts = np.zeros((k, FIRST_KIND + MOST), np.float32)
    products = np.zeros((k, d * (d + 1) // 2), np.float32)
    if len(state["habit_entities"]) > 0:
        i, j = np.tril_indices(d)
        K, to = shares.shape
        counts[:, :FIRST_KIND] = state["habit_entities"][:, :FIRST_KIND]
        own = state["habit_entities"][:, FIRST_KIND : FIRST_KIND + K]
        counts[:, FIRST_KIND : FIRST_KIND + to] = own @ shares
        products[:] = state["habit_products"] * (factor[i] * factor[j])
    return counts, products


def _kinds(states: Sequence[Arrays], shares: Sequence[FloatArray]) -> Arrays:
    """Return the first one's kinds, and kinds of first records, with the records of all others."""
    first = states[0]
    merged, of_first = _part(first, ""), _part(first, "first_")
    counts = first["first_counts"].copy()
    for state, share in zip(states[1:], shares[1:], strict=True):
        factor = frame_factor(state, first)
        _add(merged, _moments(_part(state, ""), factor, np.zeros_like(factor)), share)
        factor, shift = _of_new_entities(state, first)
        other = _moments(_part(state, "first_"), factor, shift)
        _add(of_first, other, _nearest(_part(first, "first_"), other))
        counts[0] += state["first_counts"][0]
    named = {f"first_{name}": array for name, array in of_first.items()}
    return {**merged, **named, "first_counts": counts}


def _part(state: Arrays, prefix: str) -> Arrays:
    """Return the arrays of kinds that ``prefix`` says."""
    return {name: state[prefix + name] for name in Kinds().state()}


def _moments(kinds: Arrays, factor: FloatArray, shift: FloatArray) -> Arrays:
    """Return kinds with the moments of their rows times a factor (d,) plus a shift (d,)."""
    if len(kinds["kinds_count"]) == 0:
        return kinds
    i, j = np.tril_indices(len(factor))
    count, sums = kinds["kinds_count"][:, None], factor * kinds["kinds_sums"]
    squares = factor[i] * factor[j] * kinds["kinds_squares"]
    squares = squares + sums[:, i] * shift[j] + sums[:, j] * shift[i] + count * shift[i] * shift[j]
    return kinds | {
        "kinds_sums": sums + count * shift,
        "kinds_squares": squares,
        "kinds_mean": factor * kinds["kinds_mean"] + shift,
    }


def _add(kinds: Arrays, other: Arrays, shares: FloatArray) -> None:
    """Add the moments of other kinds (K,) by their ``shares`` (K, L) in these (L,)."""
    if shares.any():
        for name in ("kinds_count", "kinds_sums", "kinds_squares"):
            kinds[name] = kinds[name] + shares.T @ other[name]
        kinds["kinds_records"] = kinds["kinds_records"] + other["kinds_records"]


def _shares(first: Arrays, state: Arrays, factor: FloatArray) -> FloatArray:
    other = _moments(_part(state, ""), factor, np.zeros_like(factor))
    return _nearest(_part(first, ""), other)


def _nearest(kinds: Arrays, other: Arrays) -> FloatArray:
    """Return to which of some kinds (L,) records of others (K,) belong, as shares (K, L).

    By the mean log-density of the records of one Gaussian under another. None belong to any before
    kinds have settled, since they are found anew then.
    """
    K, L = len(other["kinds_count"]), len(kinds["kinds_count"])
    if min(kinds["kinds_records"].item(), other["kinds_records"].item()) < STARTS[-1]:
        return np.zeros((K, L))
    (weight, mean, covariance), (_, centre, around) = _gaussians(kinds), _gaussians(other)
    inverse = np.linalg.inv(covariance)
    log_density = np.log(weight) - 0.5 * np.linalg.slogdet(covariance)[1]
    off = centre[:, None] - mean
    log_density = log_density - 0.5 * np.einsum("lij,kji->kl", inverse, around)
    log_density -= 0.5 * np.einsum("kli,lij,klj->kl", off, inverse, off)
    shares = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    normalised: FloatArray = shares / shares.sum(axis=1, keepdims=True)
    return normalised


def _gaussians(arrays: Arrays) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return weights (K,), means (K, d) and covariances (K, d, d) of kinds."""
    kinds, d = Kinds(), arrays["kinds_mean"].shape[1]
    kinds.restore(arrays, d)
    if kinds.mixture is None:
        raise RuntimeError("expected kinds that have settled")
    lower, _ = kinds.covariances()
    i, j = np.tril_indices(d)
    full = np.empty((len(lower), d, d))
    full[:, i, j] = full[:, j, i] = lower
    return kinds.mixture.weight, kinds.mixture.gaussians.mean, full


def _of_new_entities(state: Arrays, first: Arrays) -> tuple[FloatArray, FloatArray]:
    """Return factor and shift (d,) from a state's units of new entities to the first one's."""
    (location, scale), (to, unit) = _new_units(state), _new_units(first)
    frame = first["entity_population"][FRAME]
    factor = frame_factor(state, first) * scale / unit
    return factor, frame * (location - to) / unit


def _new_units(state: Arrays) -> tuple[FloatArray, FloatArray]:
    """Return location and scale (d,) of the first record of an entity, in the fields' units."""
    location, scale = state["entity_reference"]
    units = np.empty((len(location), 3))
    for v in range(len(units)):
        predict(0.0, np.zeros(2), state["entity_population"], v, units[v])
    return location + scale * units[:, LOCATION], scale * units[:, SCALE]
