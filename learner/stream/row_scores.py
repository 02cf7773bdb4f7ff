"""Rows to scores: measures, p-values, anomalies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.entities.layer import OwnRows
from faust_oslrau.learner.protocol import Measured
from faust_oslrau.learner.scoring.block import BlockMaker
from faust_oslrau.learner.scoring.missing import stretch

from .explaining import explain
from .measures import all_measures, log_jacobian, measure, past_density
from .state import ScorerState

FloatArray = NDArray[np.float64]

WARM_UP = 240
"""Records whose scores are flagged as warming up: the first four batches, 16 to 128."""


def score(
    state: ScorerState,
    rows: FloatArray,
    own: OwnRows | None,
    learned: FloatArray,
    block: BlockMaker,
    at: slice,
) -> tuple[FloatArray, Measured | None]:
    """Fill in the scores of transformed rows; return their completed measures, and evaluation.

    ``learned`` are the rows as the learner is given them.
    """
    measures, evaluation = np.full((len(rows), 1), np.nan), None
    block.n_learned[at] = state.learner.n_records_
    block.warming_up[at] = state.n_records + np.arange(len(rows)) < WARM_UP
    if state.has_model:
        slopes = log_jacobian(state, rows, own)
        evaluation = state.learner.evaluate(learned)
        measured: Measured = evaluation
        if state.habits is not None:
            measured = state.habits.mix(learned, evaluation)
        block.log_likelihood[at] = measured.log_density + slopes
        past = None
        if state.history is not None:
            given, past = past_density(state.learner, state.history, learned)
            block.log_likelihood[at] -= given
        measures = all_measures(state, learned, measured, slopes, past)
        measures = state.missing.complete(learned, measures, lambda some: measure(state, some))
        comparable = state.ranking.stretched(measures, stretch(learned))
        scores = state.ranking.score(comparable)
        if state.entities is not None:
            scores = state.entities.relate(scores)
        p_value = state.calibration.p_value(scores)
        block.p_value[at] = p_value
        unusual = p_value <= state.alarm_rate
        if state.stretches is not None:
            stretch_scores = state.stretches.take(scores, *state.slots(len(rows)))
            block.stretch.append(stretch_scores)
            # half of the alarms are for records, half for stretches
            lowest = np.fmin(p_value, stretch_scores.p_value)
            unusual = lowest <= state.alarm_rate / 2.0
        block.is_anomaly[at] = state.first_alarms.choose(unusual, state.n_records, state.alarm_rate)
        if state.incidents is not None:
            p_value = state.incidents.usual.p_value(scores, p_value)
        explain(state, learned, own, comparable[:, 0], p_value, block, at)
    elif state.stretches is not None:
        block.stretch.append(state.stretches.skip(len(rows)))
    return measures, evaluation
