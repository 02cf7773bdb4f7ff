"""Search for the fewest fields of a record without which the rest of it is usual.

Fields are set aside one after the other. But wrong values can hide each other: two of them may make
a correct third one look worse than themselves. So from the second round on, two sets of fields are
followed. One is the best by what the fields say of each other. The other is the best if what is
known of each field alone counts as well: a wrong value of another field cannot hide that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from faust_oslrau.learner.arrays import FloatArray, IntArray, Mask
from faust_oslrau.learner.density.gaussian_kernels import GAUSSIAN_ENTROPY
from faust_oslrau.learner.protocol import Comparable, of_rows

from .tail_mass import FARTHEST, units


class Comparison(NamedTuple):
    """Each field of k records given other fields of its record, (k, d) each.

    As `blame.Blame` has them; ``nats`` are NaN where a value is missing.
    """

    nats: FloatArray
    usual: FloatArray
    expected: FloatArray
    deviation: FloatArray

    @property
    def excess(self) -> FloatArray:
        """Nats (k, d) beyond the usual."""
        return self.nats - self.usual


def compare(learner: Comparable, rows: FloatArray) -> Comparison:
    """Compare each field of ``rows`` (k, d) with the other fields of its row."""
    nats, expected, deviation = learner.given_others(rows)
    return Comparison(nats, GAUSSIAN_ENTROPY + np.log(deviation), expected, deviation)


def compare_without(learner: Comparable, rows: FloatArray, aside: Mask) -> Comparison:
    """Compare each field of ``rows`` (k, d) with the others that are not set ``aside`` (k, d)."""
    rest = np.where(aside, np.nan, rows)
    found = compare(learner, rest)
    record, field = np.nonzero(aside)
    joined = rest[record]
    joined[np.arange(len(record)), field] = rows[record, field]
    both = of_rows(learner, np.concatenate([np.arange(len(rest)), record]))
    log_density = both.score_samples(np.concatenate([rest, joined]))
    found.nats[record, field] = log_density[record] - log_density[len(rest) :]
    return found


def excess_alone(rows: FloatArray, usual_rows: FloatArray) -> FloatArray:
    """Return the nats (k, d) by which each value exceeds the usual if nothing but it is known.

    Those of a Gaussian with the field's mean and deviation among ``usual_rows`` (n, d): no value of
    another field enters. NaN where a value is missing.
    """
    location, scale = units(usual_rows)
    with np.errstate(over="ignore"):
        z = np.clip((rows - location) * scale, -FARTHEST, FARTHEST)
    return np.asarray(0.5 * z**2 - 0.5, np.float64)


ROUNDS = 3
"""Most fields that are set aside one after the other. Each round after the first costs up to two
comparisons, and any of these fields shows an incident in more of them."""

FAR = 7.0
"""Nats beyond the usual, 3.9 standard deviations, from which on a value is far from what is
expected of it. With 6, more correct fields are blamed in heavy tails."""

IsUsual = Callable[[FloatArray], Mask]
"""Tells which log-densities (k,) are usual."""


class Sets(NamedTuple):
    """For each of n records, w sets of fields to set aside.

    Attributes
    ----------
    aside
        The fields of each set (n, w, d).
    score
        The log-density of the record if these fields had usual values (n, w).
    """

    aside: Mask
    score: FloatArray


def several_wrong_fields(
    learner: Comparable,
    rows: FloatArray,
    score: FloatArray,
    excess: FloatArray,
    alone: FloatArray,
    is_usual: IsUsual,
) -> Mask:
    """Return the fewest fields (k, d), two or more, without which the rest of a row is usual.

    ``score`` (k,) is the log-density of the rows. By ``excess`` (k, d) nats each field exceeds the
    usual given all others, and by ``alone`` (k, d) if nothing else is known. If the fields S had
    usual values, the score would be higher by what they exceed the usual, as log p(x) =
    log p(the rest) + log p(x_S | the rest). The rest is usual if that score is. Of several sets of
    as many fields, the one with the highest score is returned. If ``ROUNDS`` fields are not enough,
    those ``FAR`` from their means count.
    """
    alone = np.nan_to_num(alone)
    wrong, waiting = np.zeros(rows.shape, np.bool_), np.arange(len(rows))
    sets = Sets(np.zeros((len(rows), 1, rows.shape[1]), np.bool_), score[:, None])
    scores = _scores(sets, excess[:, None])
    for _ in range(1, ROUNDS):
        sets = _two_best(sets, scores, alone[waiting])
        scores = _scores(sets, _excess(of_rows(learner, waiting), rows[waiting], sets, is_usual))
        best = _extended(sets, scores, _flat(scores).argmax(axis=1)[:, None])
        wrong[waiting] = best.aside[:, 0]
        left = (~np.isnan(rows[waiting]) & ~best.aside[:, 0]).any(axis=1)
        more = left & ~is_usual(best.score[:, 0])
        waiting, scores = waiting[more], scores[more]
        sets = Sets(sets.aside[more], sets.score[more])
        if len(waiting) == 0:
            break
    wrong[waiting] = _many(wrong[waiting], alone[waiting] > FAR)
    return wrong


def _many(wrong: Mask, far: Mask) -> Mask:
    """Return the wrong fields (n, d) of records for which those that were found are not enough.

    Many wrong values hide each other. So if more fields are far from their means than were
    searched for, these alone count.
    """
    enough = np.count_nonzero(far, axis=1) > ROUNDS
    return np.where(enough[:, None], far, wrong | far)


def _excess(learner: Comparable, rows: FloatArray, sets: Sets, is_usual: IsUsual) -> FloatArray:
    """Return the nats (n, 2, d) by which each field exceeds the usual without those set aside.

    NaN for the second set where the first one with one more field leaves a usual rest.
    """
    excess = np.full(sets.aside.shape, np.nan)
    rest = np.where(sets.aside, np.nan, rows[:, None])
    excess[:, 0] = compare(learner, rest[:, 0]).excess
    highest = np.nan_to_num(excess[:, 0], nan=-np.inf).max(axis=1)
    unusual = ~is_usual(sets.score[:, 0] + highest)
    if unusual.any():
        excess[unusual, 1] = compare(of_rows(learner, unusual), rest[unusual, 1]).excess
    return excess


def _scores(sets: Sets, excess: FloatArray) -> FloatArray:
    """Return the scores (n, w, d) of the sets with one more field each, -inf for no new set."""
    scores = sets.score[:, :, None] + np.where(np.isnan(excess), -np.inf, excess)
    if scores.shape[1] == 2:
        only_first = sets.aside[:, 0] & ~sets.aside[:, 1]
        # with the one field that only the first set has, the second is an extension of the first
        repeated = only_first & (np.count_nonzero(only_first, axis=1) == 1)[:, None]
        scores[:, 1][repeated] = -np.inf
    return scores


def _two_best(sets: Sets, scores: FloatArray, alone: FloatArray) -> Sets:
    """Return two sets of each record with one more field.

    The best by score, and of the others the best if what each field exceeds the usual ``alone``
    (n, d) counts as well.
    """
    first, record = _flat(scores).argmax(axis=1), np.arange(len(scores))
    of_sets = (sets.aside * alone[:, None]).sum(axis=2)
    with_alone = _flat(scores + of_sets[:, :, None] + alone[:, None])
    with_alone[record, first] = -np.inf
    return _extended(sets, scores, np.column_stack([first, with_alone.argmax(axis=1)]))


def _extended(sets: Sets, scores: FloatArray, chosen: IntArray) -> Sets:
    """Return sets with one more field, by their positions (n, c) among the scores of a record."""
    d, record = scores.shape[2], np.arange(len(scores))[:, None]
    aside = sets.aside[record, chosen // d]
    aside[record, np.arange(chosen.shape[1]), chosen % d] = True
    return Sets(aside, np.take_along_axis(_flat(scores), chosen, axis=1))


def _flat(scores: FloatArray) -> FloatArray:
    return scores.reshape(len(scores), -1)
