"""The entities of several partitions as those of one, for the mixture of their networks.

States are those of `Entities.state`, the largest first. Levels are taken to its units, those of
its stream; rows are in Gaussian units in all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.arrays import Arrays, FloatArray
from faust_oslrau.learner.keys import Key

from . import memory, population
from .levels import LARGEST_VALUE, MEMORY, SQUARES
from .roster import FormerEntities, keys_of, packed_keys


class Entity(NamedTuple):
    """An entity of one of several states: its key, the state, its slot, the records since then."""

    key: Key
    state: int
    slot: int
    age: int


def merge_entities(states: Sequence[Arrays], limit: int, former_limit: int) -> Arrays:
    """Return the state of all entities together; the longest unseen beyond ``limit`` give way.

    What is known of an entity in several states is that of the state in which it was seen last.
    Scores of entities are in units of their own state, and their kinds are those of it: those of
    the others begin anew. ``limit`` and ``former_limit`` are the most entities, and the most of
    which levels are kept.
    """
    first, d = states[0], states[0]["entity_reference"].shape[1]
    levels, statistics = zip(*(_levels(state, first) for state in states), strict=True)
    every = _united(states)
    kept, gone = every[:limit], every[limit:]
    former = _former(states, kept, former_limit)
    for entity in reversed(gone):
        at = entity.state, entity.slot
        former.add(entity.key, levels[at[0]][at[1]], statistics[at[0]][at[1]])
    keys, lengths = packed_keys([entity.key for entity in kept])
    merged = {
        **first,
        **former.state(),
        "entity_keys": keys,
        "entity_key_lengths": lengths,
        "entity_ages": np.arange(1, len(kept) + 1),
        "entity_levels": _of(kept, levels),
        "entity_statistics": _of(kept, statistics),
        "entity_followed": np.zeros((min(len(kept), memory.FOLLOWED), d, memory.COUNT + 1)),
        "entity_losses": np.sum([state["entity_losses"] for state in states], axis=0),
        "entity_scores": _of(kept, [_scores(state, first) for state in states]),
    }
    merged["entity_population"] = _population(merged)
    if len(first["habit_ages"]) > 0:
        for what in ("ages", "known", "weights", "records", "products"):
            columns = [_habits(state, first, f"habit_{what}") for state in states]
            merged[f"habit_{what}"] = _of(kept, columns)
    merged["habit_common"] = np.sum([state["habit_common"] for state in states], axis=0)
    return merged


def _united(states: Sequence[Arrays]) -> list[Entity]:
    """Return each entity once, the one that was seen last first."""
    every = [
        Entity(key, number, slot, age)
        for number, state in enumerate(states)
        for slot, (key, age) in enumerate(
            zip(keys_of(state, "entity_key"), state["entity_ages"].tolist(), strict=True)
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


def _levels(
    state: Arrays, first: Arrays, prefix: str = "entity"
) -> tuple[FloatArray, NDArray[np.float32]]:
    """Return means (k, d) and statistics (k, d, 2) of levels in units of the first stream."""
    (location, scale), (to, unit) = state["entity_reference"], first["entity_reference"]
    statistics = state[f"{prefix}_statistics"].copy()
    statistics[..., SQUARES] *= (scale / unit) ** 2
    levels = state[f"{prefix}_levels"] * (scale / unit) + (location - to) / unit
    return levels.clip(-LARGEST_VALUE, LARGEST_VALUE), statistics


def _former(states: Sequence[Arrays], kept: Sequence[Entity], former_limit: int) -> FormerEntities:
    """Return the former entities of all, in units of the first: its own ones gave way last."""
    former, known = FormerEntities(former_limit), {entity.key for entity in kept}
    for state in reversed(states):
        keys = keys_of(state, "former_key")
        if not keys:
            continue
        for key, means, statistics in zip(keys, *_levels(state, states[0], "former"), strict=True):
            if key not in known:
                former.add(key, means, statistics)
    return former


def _scores(state: Arrays, first: Arrays) -> FloatArray:
    scores: FloatArray = state["entity_scores"]
    return scores if state is first else np.zeros_like(scores)


def _population(merged: Arrays) -> FloatArray:
    """Return what all entities are like."""
    levels, statistics = merged["entity_levels"], merged["entity_statistics"]
    some = population.sampled(len(levels))
    found = population.estimate(levels[some], statistics[some], merged["entity_population"])
    found[MEMORY] = memory.best_memory(merged["entity_losses"])
    return found


def _habits(state: Arrays, first: Arrays, name: str) -> NDArray[np.float32]:
    """Return a column of the habits of a state's entities; none has records of others' kinds."""
    column: NDArray[np.float32] = state[name]
    if len(column) == 0 or (name == "habit_records" and state is not first):
        return np.zeros((len(state["entity_levels"]), *first[name].shape[1:]), np.float32)
    return column
