"""Rows to scores: measures, p-values, anomalies."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.entities.habits import Mixed
from faust_oslrau.learner.protocol import Measured
from faust_oslrau.learner.queries.density import Evaluation
from faust_oslrau.learner.scoring.block import BlockMaker

from .explaining import explain, relevant_p_value
from .state import Layered, Ranked, ScorerState
from .unknown_category import with_exact_sums

WARM_UP = 240
"""Records whose scores are flagged as warming up: the first four batches, 16 to 128."""


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
    """Return the log-density of rows as the learner has it, nearness and tail mass (m, k).

    Log-densities are what they are above `usual_log_density`, so that a missing value counts as a
    usual one.

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
    columns = [evaluation.log_density - state.learner.usual_log_density(rows)]
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


def evaluate(state: ScorerState, learned: FloatArray) -> tuple[Evaluation, Measured]:
    """Evaluate rows as the learner is given them, then mix their densities with habits."""
    evaluation = state.learner.evaluate(learned)
    if state.habits is None:
        return evaluation, evaluation
    return evaluation, state.habits.mix(learned, evaluation)


def rank(
    state: ScorerState,
    learned: FloatArray,
    evaluated: tuple[Evaluation, Measured],
    slopes: FloatArray | float,
    of_categories: FloatArray,
) -> Ranked:
    """Score rows as the learner is given them; ``slopes`` (m,) lead to the fields' own units.

    ``of_categories`` (m, 3) are the log-probability of their categories, what it is on average, and
    that of one as rare as the rarest.
    """
    evaluation, measured = evaluated
    past: FloatArray | None = None
    above: FloatArray | None = None
    if state.history is not None:
        before = state.history.past(learned)
        past = state.learner.score_samples(before)
        above = past - state.learner.usual_log_density(before)
    log_probability, usual, log_rarity = of_categories.T
    measures = all_measures(state, learned, measured, slopes, log_probability - usual, above)
    scores = state.ranking.score(measures)
    if state.entities is not None:
        scores = state.entities.relate(scores)
    if state.categories is not None:
        scores = np.minimum(scores, state.reference.score_at(np.exp(log_rarity)))
    given = 0.0 if past is None else past
    return Ranked(evaluation, measured.log_density, given, measures, scores)


def score(state: ScorerState, layered: Layered, block: BlockMaker, at: slice) -> Ranked | None:
    """Fill in the scores of rows; return what they come from, None without a model."""
    block.n_learned[at] = state.learner.n_records_
    block.warming_up[at][: max(WARM_UP - state.n_records, 0)] = True
    if not state.has_model:
        return None
    slopes, evaluated = log_jacobian(state, layered), evaluate(state, layered.learned)
    of_categories = with_exact_sums(state, layered, evaluated[1])
    ranked = rank(state, layered.learned, evaluated, slopes, of_categories)
    density = ranked.log_density + slopes - ranked.past
    block.log_likelihood[at] = density + of_categories[:, 0]
    p_value = state.reference.p_value(ranked.scores, layered.marks)
    p_value, as_evidence = relevant_p_value(state, ranked, layered, p_value, block.given[at])
    block.p_value[at], block.is_anomaly[at] = p_value, p_value <= state.alarm_rate
    explain(state, ranked, layered, as_evidence, block, at)
    return ranked
