"""How unusual rows are, by the measures of the learner and of the layers around it."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.entities.habits import Mixed
from faust_oslrau.learner.history.layer import History
from faust_oslrau.learner.protocol import Density, Measured

from .state import Layered, ScorerState


def log_jacobian(state: ScorerState, layered: Layered) -> FloatArray | float:
    """Return what to add (m,) to log-densities as the learner has them for the fields' units."""
    total: FloatArray | float = 0.0
    for rows in (layered.categorical, layered.own, layered.seasonal):
        if rows is not None:
            total = total + rows.log_jacobian
    if state.transforms.names:
        total = total + state.transforms.log_jacobian(layered.numbers)
    return total


def all_measures(
    state: ScorerState,
    rows: FloatArray,
    evaluation: Measured,
    log_jacobian: FloatArray | float,
    log_probability: FloatArray,
    past: FloatArray | None,
) -> FloatArray:
    """Return the learner's measures of rows that it is given, then nearness and tail mass (m, k).

    With a history, the learner's log-density is that of a row and its running means together, which
    shows faults that last. The last measure is the log-density given the means, ``past`` (m,) less,
    which shows faults of single records. Tail mass is that of the row alone: after a fault, running
    means are unusual for some records. Once entities have habits, the mass is that of the row's own
    entity, too. Not all scorers have nearness (`ScorerState.has_nearness`).
    Log-densities are in the fields' own units; with entities or seasons, in those of the entity or
    the hour, so that records of noisy and of quiet entities and hours compare. With categories,
    density and mass are those of a row and its categories together.
    """
    own_fields = state.own_fields(rows)
    columns = list(evaluation.measures.T)
    if isinstance(evaluation, Mixed):
        columns.append(evaluation.log_mass)
    elif state.has_nearness:
        columns.append(-state.neighbours.distance(own_fields))
        columns.append(state.tail_mass.log_mass(own_fields))
    else:
        columns.append(state.tail_mass.log_mass(own_fields))
    if not state.has_own_units:
        columns[0] = columns[0] + log_jacobian
    if state.categories is not None:  # of all records, those with such categories
        columns[0] = columns[0] + log_probability
        columns[-1] = columns[-1] + log_probability
    if past is not None:
        columns.append(columns[0] - past)
    return np.array(columns).T  # numpy is slow at rows of three


def past_density(
    density: Density, history: History, rows: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return log-densities (m,) of the running means in rows that the learner is given.

    By all that was learned, and by what is established.
    """
    past, established = history.past(rows), density.established
    log_density = density.score_samples(past)
    if established is density:
        return log_density, log_density
    return log_density, established.score_samples(past)
