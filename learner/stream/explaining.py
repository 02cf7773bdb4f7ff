"""Anomalous rows to fields to blame, and to incidents; rows to what is expected; entity events."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import FloatArray, IntArray, Mask
from faust_oslrau.learner.categories.blame import compare_categories
from faust_oslrau.learner.history.layer import GivenMeans
from faust_oslrau.learner.protocol import Comparable
from faust_oslrau.learner.scoring.blame import Blame, blame, expectation, undo_blame
from faust_oslrau.learner.scoring.block import BlockMaker, moved
from faust_oslrau.learner.scoring.entity_events import (
    LEVEL,
    Aspect,
    EntityEvent,
    EntityProfile,
)
from faust_oslrau.learner.scoring.incidents import Rows, has_evidence
from faust_oslrau.learner.scoring.relevance import highest
from faust_oslrau.learner.scoring.wrong_fields import IsUsual, excess_alone

from .state import Layered, Ranked, ScorerState


def explain(
    state: ScorerState,
    ranked: Ranked,
    layered: Layered,
    as_evidence: FloatArray,
    block: BlockMaker,
    at: slice,
) -> None:
    """Blame fields of anomalous rows and of those with evidence, and follow incidents.

    ``as_evidence`` are the p-values (m,) that incidents are made of. Where the evidence that fields
    are stuck is enough for an incident, it blames these fields. What is blamed in an anomaly does
    not depend on incidents.
    """
    is_anomaly, stuck, steps = block.is_anomaly[at], layered.stuck, []
    if state.incidents is not None:
        when = block.times[at], block.now[at]
        rows = Rows(as_evidence, stuck, is_anomaly, block.places[at], *layered.slots, *when)
        steps = state.incidents.trace(rows, block.keys[at])
    if not (steps or is_anomaly.any()):
        return
    evident = has_evidence(steps, len(stuck))
    stuck = _enough(state, stuck, evident)
    is_stuck = stuck.any(axis=1)
    others = is_anomaly | (evident & ~is_stuck)
    which = np.concatenate([np.flatnonzero(others), np.flatnonzero(is_stuck)])
    again = np.arange(len(which)) >= np.count_nonzero(others)
    given = np.where(again[:, None], stuck[which], 0.0)
    found = _blame(state, ranked, layered, which, given, block.given[at])
    block.blame.append(found.of(is_anomaly[which] & ~again))
    if state.incidents is not None:
        told = np.flatnonzero(again | (evident & ~is_stuck)[which])
        events = state.incidents.events(steps, found.of(told[which[told].argsort()]))
        block.incidents += moved(events, at.start)


def relevant_p_value(
    state: ScorerState, ranked: Ranked, layered: Layered, p_value: FloatArray, given: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return p-values (m,) of rows after putting those first whose deviations matter.

    And those that they have as evidence of an incident: 1 where none matters, as many that are a
    little low would be some. ``given`` (m, d) are the rows in the fields' own units.
    """
    relevance = state.relevance
    if not relevance.is_on:
        return p_value, p_value
    which = np.flatnonzero(p_value <= highest(state.alarm_rate))
    if len(which) == 0:
        return p_value, p_value
    stuck = np.zeros((len(which), layered.numbers.shape[1]))
    found = _blame(state, ranked, layered, which, stuck, given)
    matters, p_value = relevance.matters(found), p_value.copy()
    p_value[which] = relevance.ordered(p_value[which], matters, state.alarm_rate)
    as_evidence = p_value.copy()
    as_evidence[which[~matters]] = 1.0
    return p_value, as_evidence


def expected_range(
    state: ScorerState, rows: FloatArray, deviations: float
) -> tuple[FloatArray, FloatArray]:
    """Return the range (m, d) of transformed rows in which the model expects each field.

    That is so many standard deviations below and above its mean, given the fields of the row that
    are not to blame, in the fields' own units. NaN without a model. NaN with entities, seasons or
    history, too: what was expected depends on earlier records and on the time, which are not kept.
    """
    if (
        not state.has_model
        or state.has_own_units
        or state.n_categories
        or state.history is not None
    ):
        return np.full(rows.shape, np.nan), np.full(rows.shape, np.nan)
    learner, slopes = state.learner, state.transforms.log_jacobian(rows)
    log_density = learner.score_samples(rows) - learner.usual_log_density(rows) + slopes
    alone, is_usual = _alone(state, rows), _usual(state)
    mean, deviation = expectation(state.learner, rows, log_density, alone, is_usual)
    half = deviations * deviation
    return state.transforms.undo(mean - half), state.transforms.undo(mean + half)


def entity_events(state: ScorerState, start: int) -> list[EntityEvent]:
    """Return what there is to tell of entities after the last rows, in the fields' own units.

    The first of these rows is row ``start`` of the call.
    """
    if state.entities is None:
        return []
    return [
        event._replace(
            row=start + event.row,
            aspects=tuple(_in_own_units(state, aspect) for aspect in event.aspects),
        )
        for event in state.entities.watch.found
    ]


def entity_profile(state: ScorerState, key: bytes | None) -> EntityProfile | None:
    """Return what is known of an entity, in the fields' own units; None if nothing is."""
    found = None if state.entities is None else state.entities.profile(key)
    if found is None:
        return None
    if state.categories is not None and state.categories.alone:
        return found.without_fields()
    names = ("level", "usual_level", "expected")
    undone = state.transforms.undo(np.stack([getattr(found, name) for name in names]))
    return found._replace(
        **dict(zip(names, undone, strict=True)),
        aspects=tuple(_in_own_units(state, aspect) for aspect in found.aspects),
    )


def _in_own_units(state: ScorerState, aspect: Aspect) -> Aspect:
    """Return a level in the field's own units; other aspects as they are."""
    if aspect.name != LEVEL or aspect.column is None:
        return aspect
    rows = np.full((2, state.n_fields or 0), np.nan)
    rows[:, aspect.column] = aspect.value, aspect.usual
    value, usual = state.transforms.undo(rows)[:, aspect.column].tolist()
    return aspect._replace(value=value, usual=usual)


def _enough(state: ScorerState, stuck: FloatArray, evident: Mask) -> FloatArray:
    """Return the evidence (m, d) that opens incidents, of ``evident`` rows (m,); 0 for less."""
    if state.incidents is None:
        return np.zeros(stuck.shape)
    return np.where(evident[:, None] & (stuck >= state.incidents.enough), stuck, 0.0)


def _blame(
    state: ScorerState,
    ranked: Ranked,
    layered: Layered,
    which: IntArray,
    stuck: FloatArray,
    given: FloatArray,
) -> Blame:
    """Return the blame of some of the rows, in the fields' own units.

    ``stuck`` (k, d) is the evidence that their fields are stuck; ``given`` are all rows.
    """
    log_density = ranked.measures[which, 0]
    model: Comparable = state.learner
    if state.habits is not None:
        model = state.habits.conditionals(state.learner, which)
    is_usual, categorical = _usual(state), None
    if state.categories is not None and layered.categorical is not None:
        slots = layered.categorical.slots[which]
        categorical = compare_categories(state.categories, slots, layered.numbers[which])
        log_density = log_density + categorical.excess
    found = _blame_numbers(state, model, layered.learned[which], log_density, stuck, is_usual)
    if state.history is not None:
        found = state.history.undo_blame(found)
    if layered.seasonal is not None:
        found = undo_blame(found, layered.seasonal.units[which])
    if state.entities is not None and layered.own is not None:
        found = state.entities.undo_blame(found, layered.own.units[which])
    if categorical is not None and layered.categorical is not None:
        found = undo_blame(found, layered.categorical.units[which])
    found = state.transforms.undo_blame(found)
    if state.categories is not None and categorical is not None:
        if state.categories.alone:
            found = found.without_fields()
        innocent = is_usual(log_density) & ~(stuck > 0.0).any(axis=1)
        found = categorical.beside(found, innocent)
    return found._replace(value=given[which])


def _blame_numbers(
    state: ScorerState,
    model: Comparable,
    rows: FloatArray,
    log_density: FloatArray,
    stuck: FloatArray,
    is_usual: IsUsual,
) -> Blame:
    alone = _alone(state, rows)
    if state.history is not None:
        model, alone = GivenMeans(model, state.history), state.history.beside_unknown_means(alone)
        stuck = np.nan_to_num(state.history.beside_unknown_means(stuck))
    found = blame(model, rows, log_density, alone, is_usual, stuck)
    return found._replace(extrapolated=state.ranges.is_outside(found.expected))


def _alone(state: ScorerState, rows: FloatArray) -> FloatArray:
    """Return the nats (k, d) by which values of fields exceed the usual if no other is known."""
    stored = state.neighbours.rows
    sample = stored[:: max(1, len(stored) // 128)]  # enough for means and spreads
    return excess_alone(state.own_fields(rows), sample)


def _usual(state: ScorerState) -> IsUsual:
    lowest = state.reference.lowest_usual_density(state.alarm_rate)

    def is_usual(log_density: FloatArray) -> Mask:
        return np.asarray(log_density > lowest, np.bool_)

    return is_usual
