"""The blame of several records as one."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.errors import StateError

from .blame import Blame

NUMBERS = ("value", "nats", "usual", "expected", "deviation", "extrapolated")

MOST_NATS = 50.0
"""Most nats beyond the usual that a field of one record counts for the order: one extreme value
must not outweigh all other records."""

LEAST_SHARE = 0.1
"""Least share of the nats of the field most to blame, in total, with which a field is to blame."""


class MergedBlame:
    """Averages of the blame of records, field by field, over the records that blame the field.

    Attributes
    ----------
    means
        Average of each of ``NUMBERS``, and of the nats beyond the usual as they count for the order
        (7, d).
    seen
        Number of records that blame each field (d,), empty before the first.
    """

    def __init__(self) -> None:
        self.means, self.seen = np.empty((len(NUMBERS) + 1, 0)), np.empty(0)

    def restore(self, means: FloatArray, seen: FloatArray, d: int) -> None:
        """Restore a state of ``d`` fields; StateError if it cannot be one."""
        if means.shape != (len(NUMBERS) + 1, d) or seen.shape != (d,):
            raise StateError("state: expected the merged blame of an incident")
        if not (seen >= 0).all():
            raise StateError("state: expected numbers of blamed records")
        self.means, self.seen = means, seen

    def add(self, blame: Blame, row: int) -> None:
        """Add a row of ``blame``."""
        if len(self.seen) == 0:
            d = blame.order.shape[1]
            self.means, self.seen = np.zeros((len(NUMBERS) + 1, d)), np.zeros(d)
        blamed = ~np.isnan(blame.nats[row])
        numbers = np.array([getattr(blame, name)[row] for name in NUMBERS])
        counted = np.minimum(blame.excess[row], MOST_NATS)
        self.seen[blamed] += 1
        # a category has no deviation and no mean: the latest one stands for all
        is_category = np.isnan(blame.deviation[row, blamed])
        share = np.where(is_category, 1.0, 1.0 / self.seen[blamed])
        added = np.vstack([numbers, counted])[:, blamed]
        self.means[:, blamed] = (1.0 - share) * self.means[:, blamed] + share * added

    def categories(self, c: int) -> FloatArray:
        """Return values and expected values of the last ``c`` fields, where these are to blame."""
        of = np.arange(len(self.seen))[-c:]
        named = self.means[:, of[self.seen[of] > 0]]
        return named[[NUMBERS.index("value"), NUMBERS.index("expected")]].ravel()

    def mean(self) -> Blame:
        """Return the averages (1, d), the fields with most nats beyond the usual in total first."""
        numbers = np.where(self.seen > 0, self.means[: len(NUMBERS)], np.nan)
        total = np.where(self.seen > 0, self.seen * self.means[-1], np.nan)
        order = np.argsort(-total, kind="stable")
        named = dict(zip(NUMBERS, numbers[:, None, :], strict=True))
        named["extrapolated"] = named["extrapolated"] > 0.5
        most = np.nanmax(total, initial=-np.inf)  # below 0 where values are as good as usual
        n_blamed = np.count_nonzero(total >= min(LEAST_SHARE * most, most))
        return Blame(order=order[None, :], n_blamed=np.array([n_blamed]), **named)
