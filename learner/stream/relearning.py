"""Learning the last rows anew when the season has changed their units."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.history.layer import History
from faust_oslrau.learner.scoring.block import BlockMaker
from faust_oslrau.learner.scoring.drift import Drift
from faust_oslrau.learner.scoring.neighbours import Neighbours
from faust_oslrau.learner.scoring.ranges import Ranges
from faust_oslrau.learner.scoring.ranking import Ranking
from faust_oslrau.learner.scoring.reference import Reference
from faust_oslrau.learner.scoring.tail_mass import TailMass
from faust_oslrau.learner.seasons.layer import Seasons
from faust_oslrau.learner.seasons.recent import Rows

from .learning import learn
from .row_scores import rank
from .state import FIRST_BATCH, Pending, ScorerState


def relearn(state: ScorerState) -> None:
    """Begin anew at a learning boundary with all that is in units of the network.

    A network that has learned fields with their season would find them unusual without it, and keep
    what it has learned. So a new one learns the last rows, as many as end with a whole batch, as if
    they were the first ones of the stream. Nothing is scored again.
    """
    if state.seasons is None:
        return
    _begin_anew(state)
    rows = state.seasons.recent.settled
    start, stops = 0, _boundaries(len(rows.values), state.batch_size)
    rows = rows.part(slice(len(rows.values) - stops[-1], None))
    state.n_records -= len(rows.values)
    for stop in stops:
        _take_batch(state, state.seasons, rows.part(slice(start, stop)))
        start = stop


def _begin_anew(state: ScorerState) -> None:
    state.learner = state.learner.untrained()
    state.neighbours, state.tail_mass, state.ranking = Neighbours(), TailMass(), Ranking()
    state.reference = Reference(state.reference.adapt_after)
    state.drift, state.ranges, state.next_batch = Drift(), Ranges(), FIRST_BATCH
    if state.entities is not None:
        state.entities.begin_anew()
    if state.history is not None:
        state.history = History(state.history.names, centred=state.entities is not None)


def _boundaries(m: int, batch_size: int) -> list[int]:
    """Return where the whole batches of ``m`` rows end, which are at least `FIRST_BATCH`."""
    size, stops = FIRST_BATCH, [FIRST_BATCH]
    while stops[-1] + min(2 * size, batch_size) <= m:
        size = min(2 * size, batch_size)
        stops.append(stops[-1] + size)
    return stops


def _take_batch(state: ScorerState, seasons: Seasons, rows: Rows) -> None:
    """Score and learn the next batch of rows, whose scores are known."""
    if state.entities is not None:
        state.entities.revisit(rows.slots, rows.fresh)
    learned = state.widened(seasons.less_usual(rows).rows, rows.times)
    evaluation, marks = None, state.marks(rows.values, rows.slots)
    piece = Pending.unscored(learned, marks)
    if state.has_model:
        ranked = rank(state, learned, 0.0, rows.beside)
        evaluation = ranked.evaluation
        piece = Pending(learned, ranked.measures, ranked.scores, marks)
    state.collect(piece)
    unseen = BlockMaker(rows.values, np.zeros((len(learned), 3), np.int64))
    learn(state, unseen, 0, evaluation)
