"""CategoricalDensity: the density of records of numbers and categories, as an estimator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from faust_oslrau.learner.arrays import Arrays, FloatArray, IntArray
from faust_oslrau.learner.errors import InvalidInputError
from faust_oslrau.learner.layered import LayeredDensity
from faust_oslrau.learner.oslrau import OSLRAU
from faust_oslrau.learner.parameters import require
from faust_oslrau.learner.queries.derived import as_rows
from faust_oslrau.learner.state_schema import LARGEST_LEARNED, expect

from .layer import Categories
from .rows import CategoricalRows
from .tree import log_shares

REST = np.inf
"""A value that no category has: that of all values that are not told apart."""


class CategoricalDensity(LayeredDensity[Categories]):
    """Density of records of numbers and categories: its log is log p(numbers, categories) in nats.

    The probability of the categories is that of a tree. Numbers are learned by one network, in
    units of the categories that tell most of them. Up to 255 values of a field are told apart, the
    most frequent ones; the others are one.

    Parameters
    ----------
    learner
        The model whose hyper-parameters the network has, None for ``OSLRAU()``.
    n_categories
        How many of the columns, the last ones, are categories, from 1 to 128.

    Attributes
    ----------
    learner_
        The network, which knows numbers in units of their categories only.
    n_records_
        Records learned so far.

    Notes
    -----
    ``X`` is (m, d): numbers in their own units, then a finite number for each category, any that
    names it; NaN = missing. The density of numbers whose category is missing is the sum over its
    values. Of several, up to 256 likely combinations are added up exactly; levels and spreads tell
    about what all others add. What a `StreamScorer` adds is a guard against learning faults, and
    p-values.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> service = rng.integers(3, size=2000)
    >>> latency = 10.0 ** service * rng.normal(1.0, 0.1, size=2000)
    >>> density = CategoricalDensity().partial_fit(np.c_[latency, service], batch_size=256)
    >>> usual, odd = density.score_samples([[100.0, 2], [100.0, 0]])
    >>> bool(odd < usual - 10)
    True
    """

    state_kind = "CategoricalDensity"

    def __init__(self, learner: OSLRAU | None = None, *, n_categories: int = 1) -> None:
        self.learner = learner
        self.n_categories = n_categories

    def partial_fit(self, X: ArrayLike, *, batch_size: int | None = None) -> Self:
        """Learn the rows of ``X`` (m, d): one mini-batch, or several of ``batch_size`` rows.

        Raises
        ------
        InvalidInputError
            ``X`` is not a matrix of finite or missing numbers with as many columns as before.
        InvalidParameterError
            A hyper-parameter or ``batch_size`` is outside its range.
        """
        require(batch_size is None or batch_size >= 1, "batch_size", batch_size, "at least 1")
        rows = self._check(X).clip(-LARGEST_LEARNED, LARGEST_LEARNED)
        if len(rows) == 0:
            return self
        learner, categories = self._fitted = self._fitted or self._begun()
        self._width = rows.shape[1]
        for start in range(0, len(rows), batch_size or len(rows)):
            batch = rows[start : start + (batch_size or len(rows))]
            learned = categories.take(batch, learner.score_samples).rows
            categories.end_batch(learner.memory, learning=True)
            learner.partial_fit(learned)
            self.n_records_ += len(batch)
        return self

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Log-density (m,) of each row in nats; missing fields marginalised.

        Raises
        ------
        InvalidInputError
            As ``partial_fit``.
        NotFittedError
            Nothing was learned yet.
        """
        return self._log_density(self._check(X))

    def contributions(self, X: ArrayLike) -> FloatArray:
        """Return -log p(x_i | the other fields) (m, d) in nats, NaN where x_i is missing.

        A category is held against all of its values that are told apart, and all others as one.
        """
        learner, categories = self._known()
        rows = self._check(X)
        own, first = self._in_units(rows), len(rows.T) - self.n_categories
        numbers = learner.contributions(own.rows)[:, :first] + np.log(own.units[:, :first, 1])
        lacking = np.flatnonzero((own.slots[:, :-1] < 0).any(axis=1))
        if len(lacking) > 0:  # sums over categories differ without the number
            numbers[lacking] = self._numbers_given_others(rows[lacking], first)
        found = np.full((len(rows), self.n_categories), np.nan)
        for f in range(self.n_categories):
            known = np.flatnonzero(own.slots[:, f] >= 0)
            _, log_p = self._given_others(rows[known], f)
            at = np.searchsorted(categories.counts.slots_of(f), own.slots[known, f])
            found[known, f] = -log_p[np.arange(len(known)), at]
        return np.column_stack([numbers, found])

    def impute(self, X: ArrayLike) -> FloatArray:
        """Fill the missing fields of ``X`` (m, d) given the observed ones.

        Categories with the most likely value that is told apart, one after the other, then numbers
        with their means.
        """
        learner = self._known()[0]
        rows = self._check(X).copy()
        first = rows.shape[1] - self.n_categories
        for f in range(self.n_categories):
            missing = np.flatnonzero(np.isnan(rows[:, first + f]))
            values, log_p = self._given_others(rows[missing], f)
            if len(values) > 1:
                rows[missing, first + f] = values[1 + log_p[:, 1:].argmax(axis=1)]
        own = self._in_units(rows)
        numbers = own.units[..., 0] + own.units[..., 1] * learner.impute(own.rows)
        missing = np.isnan(rows[:, :first])
        rows[:, :first][missing] = numbers[:, :first][missing]
        return rows

    def sample(
        self,
        n: int = 1,
        *,
        given: ArrayLike | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> FloatArray:
        """Draw ``n`` rows (n, d); the observed fields of the row ``given`` are held fixed.

        Categories are drawn among the values that are told apart. ``random_state`` is a seed or a
        generator; without one, the network's own seed is used.

        Raises
        ------
        InvalidInputError, NotFittedError
            As ``score_samples``.
        """
        learner = self._known()[0]
        row = np.full(self._width or 0, np.nan) if given is None else np.asarray(given, np.float64)
        rng = np.random.default_rng(learner.random_state if random_state is None else random_state)
        rows = np.tile(self._check(row[None]), (n, 1))
        first = rows.shape[1] - self.n_categories
        for f in np.flatnonzero(np.isnan(row[first:])).tolist():
            values, log_p = self._given_others(rows, f)
            if len(values) > 1:  # by the Gumbel-max trick
                drawn = (log_p[:, 1:] + rng.gumbel(size=log_p[:, 1:].shape)).argmax(axis=1)
                rows[:, first + f] = values[1 + drawn]
        own = self._in_units(rows)
        for at in _alike(own):
            fixed = own.rows[at[0]]
            drawn = learner.sample(len(at), given=fixed, random_state=rng)
            rows[at, :first] = (own.units[at, :, 0] + own.units[at, :, 1] * drawn)[:, :first]
        return np.where(np.isnan(row), rows, row)

    def _given_others(self, rows: FloatArray, f: int) -> tuple[FloatArray, FloatArray]:
        """Return the values (v,) of a category, the rest first, and their log-probability (k, v).

        That is given the other fields of each row (k, d).
        """
        of = self._known()[1]
        codes = of.counts.values.codes[of.counts.slots_of(f)]
        values = np.where(np.isnan(codes), REST, codes)
        log_p = np.empty((len(rows), len(values)))
        for v, value in enumerate(values.tolist()):
            held = rows.copy()
            held[:, rows.shape[1] - self.n_categories + f] = value
            log_p[:, v] = self._log_density(held)
        return values, log_shares(log_p)

    def _numbers_given_others(self, rows: FloatArray, n: int) -> FloatArray:
        """Return -log p(x_j | the other fields) of the first ``n`` columns, by its definition."""
        found, log_density = np.empty((len(rows), n)), self._log_density(rows)
        for j in range(n):
            others = rows.copy()
            others[:, j] = np.nan
            found[:, j] = self._log_density(others) - log_density
        return np.where(np.isnan(rows[:, :n]), np.nan, found)

    def _in_units(self, rows: FloatArray) -> CategoricalRows:
        learner, categories = self._known()
        return categories.average(rows, learner.score_samples)

    def _log_density(self, rows: FloatArray) -> FloatArray:
        own = self._in_units(rows)
        density: FloatArray = self._known()[0].score_samples(own.rows)
        return own.log_probability + own.log_jacobian + density

    def _new_layer(self) -> Categories:
        return Categories(self.n_categories)

    def _restore(self, layer: Categories, arrays: Arrays, width: int) -> int:
        expect(width >= self.n_categories, "categories")
        layer.alone = width == self.n_categories
        columns = max(width - self.n_categories, 1)
        layer.restore(arrays, columns, 0)
        return columns

    def _check(self, X: ArrayLike) -> FloatArray:
        rows = as_rows(X, self._width)
        if rows.shape[1] < self.n_categories:
            raise InvalidInputError(
                f"X: expected at least {self.n_categories} columns, got {rows.shape[1]}"
            )
        return rows


def _alike(own: CategoricalRows) -> Iterator[IntArray]:
    """Yield the indices of rows with the same categories."""
    _, group = np.unique(own.slots, axis=0, return_inverse=True)
    for number in range(group.max(initial=-1) + 1):
        yield np.flatnonzero(group == number)
