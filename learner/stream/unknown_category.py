"""Records that lack a category on which their numbers depend, where each has units of its own."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import FloatArray, IntArray
from faust_oslrau.learner.protocol import Measured
from faust_oslrau.learner.vector.blocks import row_sums

from .state import Layered, ScorerState


def with_exact_sums(state: ScorerState, layered: Layered, evaluated: Measured) -> FloatArray:
    """Return what is known of the categories (m, 3) of the rows ``evaluated`` last.

    As `CategoricalRows` has it. Where layers follow in which each record has units or running means
    of its own, the density of a row is known only now: the log-weights are those of its sums.
    """
    rows, categories = layered.categorical, state.categories
    of_categories, has_own = layered.of_categories, state.has_own_units or state.history is not None
    if categories is None or rows is None or not has_own:
        return of_categories

    def density(X: FloatArray, records: IntArray) -> FloatArray:
        return _log_density(state, layered, X, records)

    at, total = categories.summed(layered.numbers, rows.slots, density)
    if len(at) == 0:
        return of_categories
    slopes = rows.log_jacobian + _log_slopes(layered)
    of_categories = of_categories.copy()
    of_categories[at, 0] = total - evaluated.log_density[at] - slopes[at]
    return of_categories


def _log_slopes(layered: Layered) -> FloatArray:
    """Return the sums (m,) of the log-slopes of layers whose units change with each record."""
    total = np.zeros(len(layered.numbers))
    for rows in (layered.own, layered.seasonal):
        if rows is not None:
            total += rows.log_jacobian
    return total


def _log_density(
    state: ScorerState, layered: Layered, X: FloatArray, records: IntArray
) -> FloatArray:
    """Return the log-density (n,) of numbers (n, d) of some ``records`` (n,) of the rows.

    Each number is as it would be with average categories.
    """
    slopes = np.zeros(len(X))
    if state.entities is not None and layered.own is not None:
        X, slopes = state.entities.again(X, layered.own.units[records])
    if layered.seasonal is not None:
        shift, ratio = np.moveaxis(layered.seasonal.units[records], 2, 0)
        slopes = slopes - row_sums(np.where(np.isnan(X), 0.0, np.log(ratio)))
        X = (X - shift) / ratio
    rows = layered.learned[records]
    rows[:, : X.shape[1]] = X
    return slopes + state.foreseeing(records).score_samples(rows)
