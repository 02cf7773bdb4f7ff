"""Answers that follow from a density's log-densities and from what fields say of each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.density import components
from faust_oslrau.learner.errors import (
    InvalidInputError,
    InvalidParameterError,
    NotFittedError,
)
from faust_oslrau.learner.protocol import Predictive


class DerivedQueries(Predictive):
    """Queries of a density that has ``score_samples``, ``given_others`` and ``predictive``."""

    random_state: int = 0

    def contributions(self, X: ArrayLike) -> FloatArray:
        """Return -log p(x_i | the other fields) (m, d) in nats, NaN where x_i is missing."""
        return self.given_others(X)[0]

    def expected(self, X: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation (m, d) of each field given the others of its row."""
        return self.given_others(X)[1:]

    def impute(self, X: ArrayLike) -> FloatArray:
        """Fill the missing fields of ``X`` (m, d) with their means given the observed ones."""
        rows = self._check(X).copy()
        missing = np.isnan(rows)
        rows[missing] = self.expected(rows)[0][missing]
        return rows

    def conditional_quantiles(
        self, X: ArrayLike, levels: Sequence[float]
    ) -> tuple[FloatArray, FloatArray]:
        """Return means (m, d) and quantiles (q, m, d) of missing fields given the observed ones.

        Each field has a mixture of Gaussians. Those of less than a millionth of the weight are left
        out, which moves a quantile at 1 % by some 1e-5 deviations. An observed field is its value;
        NaN for a field that was never observed.

        Raises
        ------
        InvalidParameterError
            A level of ``levels`` (q,) is not in (0, 1).
        NotFittedError
            Nothing was learned yet.
        InvalidInputError
            ``X`` (m, d) does not fit the model.
        """
        wanted = np.asarray(levels, np.float64)
        if not ((wanted > 0.0) & (wanted < 1.0)).all():
            raise InvalidParameterError(f"levels = {levels}: expected numbers in (0, 1)")
        rows = self._check(X)
        return components.conditional_quantiles(rows, wanted, lambda at: self.predictive(rows[at]))

    def conditional_log_density(self, X: ArrayLike, given: Sequence[int]) -> FloatArray:
        """Log p(the other fields | the fields of index ``given``) (m,) in nats."""
        rows = self._check(X)
        condition = np.full_like(rows, np.nan)
        condition[:, list(given)] = rows[:, list(given)]
        return self.score_samples(rows) - self.score_samples(condition)

    def sample(
        self,
        n: int = 1,
        *,
        given: ArrayLike | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> FloatArray:
        """Draw ``n`` rows (n, d), with the observed fields of the row ``given`` held fixed.

        ``random_state`` is a seed or generator; without one, the model's own is used.
        """
        d = self._width()
        if d is None:
            raise NotFittedError
        row = np.full(d, np.nan) if given is None else np.asarray(given)
        seed = self.random_state if random_state is None else random_state
        return self._sample(n, self._check(row[None])[0], np.random.default_rng(seed))

    def _sample(self, n: int, row: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw ``n`` rows (n, d) with the observed fields of the row (d,)."""
        raise NotImplementedError

    def _names(self, names: Sequence[str] | None) -> Sequence[str]:
        d = self._width()
        if names is not None and len(names) != d:
            raise InvalidInputError(f"names: expected {d} of them, got {len(names)}")
        return [f"x{v}" for v in range(d or 0)] if names is None else names

    def _width(self) -> int | None:
        """Return the number of columns, None before anything was learned."""
        raise NotImplementedError

    def _check(self, X: ArrayLike) -> FloatArray:
        return as_rows(X, self._width())


def as_rows(X: ArrayLike, width: int | None) -> FloatArray:
    """Return ``X`` as rows (m, d); ``width`` is their d, or None if any will do.

    Raises
    ------
    InvalidInputError
        ``X`` is not a matrix of finite or missing numbers with so many columns.
    """
    rows = np.ascontiguousarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise InvalidInputError(f"X: expected a matrix (m, d) with d >= 1, got shape {rows.shape}")
    if width not in (None, rows.shape[1]):
        raise InvalidInputError(f"X: expected {width} columns, got {rows.shape[1]}")
    if np.isinf(rows).any():
        raise InvalidInputError("X: expected finite or missing (NaN) values, got infinity")
    return rows
