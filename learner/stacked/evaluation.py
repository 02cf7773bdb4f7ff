"""What a stacked density says of rows, to tell it and to learn from it."""

from __future__ import annotations

from typing import NamedTuple, Self

from faust_oslrau.learner.arrays import FloatArray

from . import members
from .members import Joint, Member


class StackedEvaluation(NamedTuple):
    """Rows as a model sees them: what to tell of them, and what learning them would ask for again.

    Attributes
    ----------
    measures
        How usual each row is (m, 1): its log-density without a challenger.
    log_density
        The log-density of each row (m,).
    rows
        The rows (m, d).
    told
        What the networks under the root say of them.
    members, n_records
        Of the model, which had learned so many records.
    is_established
        Whether many records support every network.
    """

    measures: FloatArray
    log_density: FloatArray
    rows: FloatArray
    told: Joint
    members: list[Member]
    n_records: int
    is_established: bool

    @property
    def by_network(self) -> FloatArray:
        """Log-density (m, M) of each row by each network under the root."""
        return self.told.each

    def weighed(self, log_shares: FloatArray) -> Self:
        """Return the evaluation with other shares (m, M) of the networks in each row."""
        log_density = members.mixed(self.told.each, log_shares)[0]
        measures = log_density[:, None] if self.is_established else self.measures
        return self._replace(measures=measures, log_density=log_density)
