"""What is expected of records before they come: the band of each field, given the past."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from faust_oslrau.learner.arrays import FloatArray, IntArray
from faust_oslrau.learner.keys import Key
from faust_oslrau.learner.protocol import Predictive, RowDensities
from faust_oslrau.learner.scoring.block import BAND, Forecast
from faust_oslrau.learner.seasons.recent import Rows

from .state import Layered, ScorerState


def forecast(state: ScorerState, density: Predictive | None, layered: Layered) -> Forecast:
    """Return the bands of rows, whatever their values are; NaN for categories.

    ``density`` is that of the rows as the learner is given them, None without a model.
    """
    own, seasonal = layered.own, layered.seasonal
    units = None if own is None else own.units, None if seasonal is None else seasonal.units
    return _wide(state, bands(state, density, layered.learned, *units))


def bands(
    state: ScorerState,
    density: Predictive | None,
    learned: FloatArray,
    own_units: FloatArray | None,
    season_units: FloatArray | None,
) -> Forecast:
    """Return the bands of the numbers of rows (m, .) as the learner is given them.

    ``density`` is that of these rows, None without a model. ``own_units`` (m, d, 3) are those of
    their entities, ``season_units`` (m, d, 2) those of their hours; None without such units.
    """
    m, d = len(learned), state.n_fields or 0
    if density is None:
        return Forecast(*np.full((3, m, d), np.nan))
    if state.history is not None:
        given = state.history.past(learned)
    else:  # nothing tells one row from another, unless their densities differ
        given = np.full((m if isinstance(density, RowDensities) else 1, d), np.nan)
    mean, quantiles = density.conditional_quantiles(given, BAND)
    bounds = [np.broadcast_to(part[:, :d], (m, d)) for part in (mean, *quantiles)]
    return Forecast(*(_in_own_units(state, part, own_units, season_units) for part in bounds))


def forecast_next(state: ScorerState, keys: Sequence[Key], times: IntArray) -> Forecast:
    """Return the bands of the next record of each entity, or at each of k times (k,).

    ``keys`` are as many, or none without entities.
    """
    k, d = len(times), state.n_fields or 0
    unknown = np.full((k, d), np.nan)
    if not state.has_model:
        return _wide(state, bands(state, None, unknown, None, None))
    slots, own_units, season_units = np.zeros(k, np.int64), None, None
    density: Predictive = state.learner
    if state.entities is not None:
        slots = state.entities.slots(keys)
        ahead, own = state.entities.ahead(unknown, keys)
        own_units = own.units
        if state.habits is not None:
            ahead.mix(unknown, state.learner.evaluate(unknown))
            density = ahead.conditionals(density, np.ones(k, np.bool_))
    if state.seasons is not None:
        rows = Rows(unknown, state.seasons.known(times), slots, np.zeros(k, np.bool_), np.zeros(k))
        season_units = state.seasons.less_usual(rows).units
    learned = unknown if state.history is None else state.history.foresee(slots, d)
    return _wide(state, bands(state, density, learned, own_units, season_units))


def _wide(state: ScorerState, found: Forecast) -> Forecast:
    """Return bands (m, d) beside unknown ones of the categories."""
    if state.categories is None:
        return found
    beside = np.full((len(found.expected), state.categories.c), np.nan)
    return Forecast(*(np.column_stack([part[:, : state.n_numbers], beside]) for part in found))


def _in_own_units(
    state: ScorerState,
    rows: FloatArray,
    own_units: FloatArray | None,
    season_units: FloatArray | None,
) -> FloatArray:
    """Return rows (m, d) in units of the learner in those of the fields."""
    if season_units is not None:
        rows = season_units[..., 0] + season_units[..., 1] * rows
    if state.entities is not None and own_units is not None:
        rows = state.entities.undo(rows, own_units)
    if state.categories is not None:
        rows = state.categories.of_unknown(rows)
    return state.transforms.undo(rows)
