"""Which fields make a record unlikely, the most to blame first."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.protocol import Learner

FloatArray = NDArray[np.float64]

ROUNDS = 3
"""Most fields that are blamed one after the other. Each round costs as much as the first, and any
of these fields shows an incident in more of them."""

GAUSSIAN_ENTROPY = 0.5 * math.log(2.0 * math.pi * math.e)
"""Entropy of N(0, 1) in nats."""


class Blame(NamedTuple):
    """The fields of k records compared with what the other fields say about them, (k, d) each.

    Attributes
    ----------
    order
        Column numbers, the most to blame first, missing fields last.
    value
        The record's values.
    nats
        -log p(x_i | the other fields), NaN where x_i is missing.
    usual
        The mean of ``nats`` if x_i agrees with the other fields: the entropy of a Gaussian with
        the standard deviation ``deviation``.
    expected, deviation
        Mean and standard deviation of the field given the other fields.

    The other fields are those not blamed before, so that a wrong value does not make correct ones
    look wrong.
    """

    order: NDArray[np.int64]
    value: FloatArray
    nats: FloatArray
    usual: FloatArray
    expected: FloatArray
    deviation: FloatArray

    @property
    def excess(self) -> FloatArray:
        """Nats (k, d) beyond the usual."""
        return self.nats - self.usual

    def of(self, which: NDArray[np.bool_]) -> Self:
        """Return the blame of those records (k,) alone."""
        return type(self)._make(column[which] for column in self)

    @classmethod
    def none(cls, d: int) -> Self:
        """Return the blame of no records."""
        return cls(np.empty((0, d), np.int64), *(np.empty((0, d)) for _ in range(5)))

    @classmethod
    def joined(cls, parts: list[Self]) -> Self:
        """Join the blame of several calls."""
        if len(parts) == 1:  # most blocks have no anomaly
            return parts[0]
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def blame(
    learner: Learner,
    rows: FloatArray,
    score: FloatArray,
    is_usual: Callable[[FloatArray], NDArray[np.bool_]],
) -> Blame:
    """Blame fields of ``rows`` (k, d) one by one, until the rest of a record ``is_usual``.

    The field that exceeds the usual by most is blamed and set aside. Then the others are compared
    again without it, as two wrong values hide each other and make correct ones look wrong.
    ``score`` (k,) is the log-density of the records. With a usual value in the blamed field it
    would be higher by what the field exceeds the usual, as log p(x) = log p(the others) +
    log p(x_i | the others).
    """
    found = _look(learner, rows)
    rest, score = rows.copy(), score.copy()
    waiting = np.arange(len(rows))
    for place in range(min(ROUNDS, rows.shape[1]) - 1):
        worst = found.order[waiting, place]
        score[waiting] += found.excess[waiting, worst]
        rest[waiting, worst] = np.nan
        waiting = waiting[~is_usual(score[waiting]) & ~np.isnan(rest[waiting]).all(axis=1)]
        if len(waiting) == 0:
            break
        _refine(found, waiting, place + 1, _look(learner, rest[waiting]))
    return found


def _look(learner: Learner, rows: FloatArray) -> Blame:
    nats, expected, deviation = learner.given_others(rows)
    usual = GAUSSIAN_ENTROPY + np.log(deviation)
    order = np.argsort(usual - nats, axis=1, kind="stable")  # NaN comes last
    return Blame(order, rows.copy(), nats, usual, expected, deviation)


def _refine(found: Blame, rows: NDArray[np.int64], place: int, seen: Blame) -> None:
    """Replace the entries of fields not yet blamed, all but the first ``place``, by ``seen``."""
    for at, row in enumerate(rows.tolist()):
        later = seen.order[at][np.isin(seen.order[at], found.order[row, place:])]
        found.order[row, place:] = later
        for name in ("nats", "usual", "expected", "deviation"):
            getattr(found, name)[row, later] = getattr(seen, name)[at, later]
