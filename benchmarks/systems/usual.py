"""What faults must know of a stream's fields: their spread, steps, codes and relations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from benchmarks.datasets import Array

from .draws import Codes

MOST_CODES = 20
"""Different values of a field up to which they are codes, flags or small counts."""

INNER = (0.005, 0.995)
GAUSSIAN_WIDTH = 5.15
"""Standard deviations of a Gaussian between its inner quantiles."""

MOST_DIGITS = 3
UNROUNDED = 12
RARE = 0.05
"""Share of records up to which a code is rare."""

RELATED = 0.3
"""Rank correlation from which fields are related."""


@dataclass(frozen=True)
class Usual:
    """Records ``x`` (n, d) without faults, and about each field (d,) of them.

    ``spread`` is the deviation of a Gaussian with the same inner quantiles, at least one step;
    ``room`` is how many spreads the field may fall, without a bound if it can be negative;
    ``digits`` are those that values are rounded to; ``is_code`` tells codes, flags and small
    counts; ``repeats`` is the share of values that are those of the record before; ``partner`` is
    the field most related to it, and ``related`` the absolute rank correlation of both.
    """

    x: Array
    spread: Array
    room: Array
    digits: Codes
    is_code: NDArray[np.bool_]
    repeats: Array
    partner: Codes
    related: Array

    def within(self, rows: Array) -> Array:
        """Round values (m, d) as their fields' are, none below zero in a field that never is."""
        fields = zip(rows.T, self.digits.tolist(), strict=True)
        columns = [c if k == UNROUNDED else np.round(c, k) for c, k in fields]
        may_fall = np.isinf(self.room) | self.is_code
        return np.asarray(np.maximum(np.column_stack(columns), np.where(may_fall, -np.inf, 0.0)))


def usual(x: Array) -> Usual:
    """Learn what faults must know of the fields of records (n, d)."""
    low, high = np.quantile(x, INNER, axis=0)
    digits = np.array([digits_of(column) for column in x.T])
    step = np.where(digits < UNROUNDED, 10.0**-digits, 0.0)
    spread = np.where(high > low, (high - low) / GAUSSIAN_WIDTH, x.std(axis=0))
    spread = np.maximum(spread, step)
    room = np.where(x.min(axis=0) < 0, np.inf, low / spread)
    codes = np.array([len(np.unique(column)) for column in x.T]) <= MOST_CODES
    repeats = np.mean(x[1:] == x[:-1], axis=0)
    partner, related = relations(x)
    return Usual(x, spread, room, digits, codes, repeats, partner, related)


def digits_of(column: Array) -> int:
    """Tell to how many digits after the point values (n,) are rounded."""
    for digits in range(MOST_DIGITS + 1):
        if np.array_equal(np.round(column, digits), column):
            return digits
    return UNROUNDED


def relations(x: Array) -> tuple[Codes, Array]:
    """Give each field's most related other one (d,), and their absolute rank correlation (d,)."""
    ranks = rankdata(x, axis=0)
    ranks -= ranks.mean(axis=0)
    length = np.linalg.norm(ranks, axis=0)
    related = np.abs(ranks.T @ ranks) / np.maximum(np.outer(length, length), 1.0)
    np.fill_diagonal(related, 0.0)
    return related.argmax(axis=1), related.max(axis=1)


def seldom(rng: np.random.Generator, about: Usual, field: int) -> float:
    """Give a field's least frequent code, or one that is never seen if none is rare."""
    values, counts = np.unique(about.x[:, field], return_counts=True)
    rarest = int(counts.argmin())
    is_rare = counts[rarest] <= RARE * len(about.x)
    return float(values[rarest]) if is_rare else unseen(rng, about, field)


def unseen(rng: np.random.Generator, about: Usual, field: int) -> float:
    """Give a code between a field's others, one below or up to three above, that it never has."""
    scale = 10.0 ** about.digits[field]
    seen = np.rint(np.unique(about.x[:, field]) * scale).astype(np.int64)
    options = np.setdiff1d(np.arange(seen[0] - 1, seen[-1] + 4), seen)
    return float(np.round(rng.choice(options) / scale, about.digits[field]))
