"""Anomalous rows to fields to blame, and to incidents."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.entities.layer import OwnRows
from faust_oslrau.learner.scoring.blame import Blame, blame
from faust_oslrau.learner.scoring.block import BlockMaker
from faust_oslrau.learner.scoring.comparison import excess_alone
from faust_oslrau.learner.scoring.incidents import has_evidence

from .state import ScorerState

FloatArray = NDArray[np.float64]


def explain(
    state: ScorerState,
    rows: FloatArray,
    own: OwnRows | None,
    log_density: FloatArray,
    block: BlockMaker,
    at: slice,
) -> None:
    """Blame fields of anomalous rows and of those with evidence, and follow incidents."""
    is_anomaly, steps = block.is_anomaly[at], []
    if state.incidents is not None:
        steps = state.incidents.trace(block.p_value[at], is_anomaly, block.places[at])
    evident = has_evidence(steps, len(rows))
    either = is_anomaly | evident
    if not (either.any() or steps):
        return
    found = _blame(state, rows[either], log_density[either])
    if state.entities is not None and own is not None:
        found = state.entities.undo_blame(found, own.units[either])
    found = state.transforms.undo_blame(found)._replace(value=block.given[at][either])
    block.blame.append(found.of(is_anomaly[either]))
    if state.incidents is not None:
        events = state.incidents.events(steps, found.of(evident[either]))
        block.incidents += [event._replace(row=at.start + event.row) for event in events]


def _blame(state: ScorerState, rows: FloatArray, log_density: FloatArray) -> Blame:
    stored = state.neighbours.rows
    sample = stored[:: max(1, len(stored) // 128)]  # enough for means and spreads
    alone = excess_alone(rows, sample)

    def is_usual(log_density: FloatArray) -> NDArray[np.bool_]:
        return state.densities.p_value(log_density) > state.alarm_rate

    found = blame(state.learner.established, rows, log_density, alone, is_usual)
    return found._replace(extrapolated=state.ranges.is_outside(found.expected))
