"""The interface that a stream scorer needs of a learner. ``OSLRAU`` is one implementation."""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Measured(Protocol):
    """The result of ``evaluate``: ``measures`` (m, k), and what learning of the rows can reuse."""

    @property
    def measures(self) -> NDArray[np.float64]:
        """Measures of each row."""


class Learner(Protocol):
    """A density that is learned one mini-batch at a time. Low log-density = anomalous."""

    n_records_: int

    def check_parameters(self) -> None:
        """Raise InvalidParameterError for a hyper-parameter outside its range."""

    def partial_fit(self, X: ArrayLike, *, evaluation: Any = None) -> object:
        """Learn one mini-batch (m, d), NaN = missing.

        ``evaluation`` is the result of ``evaluate`` for these rows; one of other rows is ignored.
        """

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Log-density (m,) of each row in nats; a row's bits depend on that row alone."""

    def evaluate(self, X: ArrayLike) -> Measured:
        """Measure how usual each row is by k measures, high = usual, the log-density first.

        ``k`` never changes once something was learned; a row's bits depend on that row alone.
        """

    def given_others(
        self, X: ArrayLike
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Compare each field with the others of its row; return three arrays (m, d).

        -log p(x_i | the other fields) in nats, NaN where x_i is missing; mean and standard
        deviation of x_i given the others.
        """

    def to_bytes(self) -> bytes:
        """Write the whole state, so that learning can go on from it to the same bits."""

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Restore what ``to_bytes`` wrote; StateError for anything else."""
