"""How unusual rows are, by the measures of the learner and of the layers around it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.entities.layer import OwnRows
from faust_oslrau.learner.protocol import Measured
from faust_oslrau.learner.seasons.layer import SeasonalRows

from .state import ScorerState

FloatArray = NDArray[np.float64]


def log_jacobian(
    state: ScorerState, rows: FloatArray, own: OwnRows | None, seasonal: SeasonalRows | None
) -> FloatArray | float:
    """Return what to add (m,) to log-densities of transformed rows for the fields' units."""
    total: FloatArray | float = 0.0
    if own is not None:
        total = own.log_jacobian
    if seasonal is not None:
        total = total + seasonal.log_jacobian
    if state.transforms.names:
        total = total + state.transforms.log_jacobian(rows)
    return total


def all_measures(
    state: ScorerState, rows: FloatArray, evaluation: Measured, log_jacobian: FloatArray | float
) -> FloatArray:
    """Return the learner's measures of rows that it is given, then nearness and tail mass (m, k).

    With a history, log-densities are those of a row and its running means together.
    Log-densities are in the fields' own units; with entities or seasons, in those of the entity or
    the hour, so that records of noisy and of quiet entities and hours compare.
    """
    nearness, mass = -state.neighbours.distance(rows), state.tail_mass.log_mass(rows)
    measures = np.column_stack([evaluation.measures, nearness, mass])
    if not state.has_own_units:
        measures[:, 0] += log_jacobian
    return measures


def measure(state: ScorerState, rows: FloatArray) -> FloatArray:
    """Evaluate rows as the learner is given them, and return all their measures (m, k)."""
    own_fields = rows if state.history is None else state.history.own_fields(rows)
    slopes = 0.0 if state.has_own_units else log_jacobian(state, own_fields, None, None)
    return all_measures(state, rows, state.learner.evaluate(rows), slopes)
