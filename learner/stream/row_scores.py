"""Rows to scores: measures, p-values, anomalies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.entities.layer import OwnRows
from faust_oslrau.learner.protocol import Measured
from faust_oslrau.learner.scoring.block import BlockMaker
from faust_oslrau.learner.scoring.missing import stretch

from .explaining import explain
from .measures import all_measures, log_jacobian, measure
from .state import ScorerState

FloatArray = NDArray[np.float64]

WARM_UP = 240
"""Records whose scores are flagged as warming up: the first four batches, 16 to 128."""


def score(
    state: ScorerState, rows: FloatArray, own: OwnRows | None, block: BlockMaker, at: slice
) -> tuple[FloatArray, Measured | None]:
    """Fill in the scores of transformed rows; return their completed measures, and evaluation."""
    measures, evaluation = np.full((len(rows), 1), np.nan), None
    block.n_learned[at] = state.learner.n_records_
    block.warming_up[at] = state.n_records + np.arange(len(rows)) < WARM_UP
    if state.has_model:
        slopes = log_jacobian(state, rows, own)
        if own is not None:
            rows = own.rows
        evaluation = state.learner.evaluate(rows)
        block.log_likelihood[at] = evaluation.log_density + slopes
        measures = all_measures(state, rows, evaluation, slopes)
        measures = state.missing.complete(rows, measures, lambda some: measure(state, some))
        comparable = state.ranking.stretched(measures, stretch(rows))
        scores = state.ranking.score(comparable)
        if state.entities is not None:
            scores = state.entities.relate(scores)
        p_value = state.calibration.p_value(scores)
        block.p_value[at] = p_value
        block.is_anomaly[at] = state.first_alarms.choose(
            p_value <= state.alarm_rate, state.n_records, state.alarm_rate
        )
        explain(state, rows, own, comparable[:, 0], block, at)
    return measures, evaluation
