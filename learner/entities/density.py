"""EntityDensity: the density of a record given its entity, as an estimator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faust_oslrau.learner.arrays import Arrays, FloatArray
from faust_oslrau.learner.keys import Key
from faust_oslrau.learner.layered import LayeredDensity
from faust_oslrau.learner.oslrau import OSLRAU
from faust_oslrau.learner.parameters import require
from faust_oslrau.learner.protocol import InUnits
from faust_oslrau.learner.queries.derived import as_rows
from faust_oslrau.learner.scoring.entity_events import EntityProfile
from faust_oslrau.learner.state_schema import expect

from .habits import WIDEST
from .layer import Entities, Others
from .roster import Name, as_keys

Names = Sequence[Name] | NDArray[Any]

AT_ONCE = 4096
"""Rows that are asked about at once: each takes a copy of what is known of its entity."""


class EntityDensity(LayeredDensity[Entities]):
    """Density of records that belong to entities: devices, customers, services.

    All entities share one network. It learns rows in units of their entity: each entity has a level
    and a scale in each field, drawn to what entities are like while it has few records. Up to 32
    fields, the network's density is mixed with what is usual for the entity beyond that. An entity
    is known by its records alone, so a new one may come at any time.

    A query treats each row as the next record of its entity, and changes nothing.

    Parameters
    ----------
    learner
        The model whose hyper-parameters the network has, None for ``OSLRAU()``.
    max_entities
        Most entities at a time, at least 1; the one not seen for longest gives way.
    max_former_entities
        Most entities that gave way whose levels and scales are kept, for when they come back.

    Attributes
    ----------
    learner_
        The network, which knows rows in units of their entities only.
    n_records_
        Records learned so far.

    Notes
    -----
    ``X`` is (m, d) in the fields' own units, NaN = missing. ``entity`` has the entity of each row:
    bytes, text, which is its UTF-8, a whole number, which is its digits, or None for the entity of
    all rows without one. Log-densities are in nats per record; low = anomalous. What a
    `StreamScorer` adds is a guard against learning faults, and p-values.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> machine = rng.integers(20, size=2000)
    >>> X = machine[:, None] + 0.1 * rng.normal(size=(2000, 3))  # each has a level of its own
    >>> density = EntityDensity().partial_fit(X, machine, batch_size=256)
    >>> usual, odd = density.score_samples([[3.0, 3.0, 3.0], [3.0, 3.0, 3.0]], [3, 4])
    >>> bool(odd < usual - 10)
    True
    """

    state_kind = "EntityDensity"

    def __init__(
        self,
        learner: OSLRAU | None = None,
        *,
        max_entities: int = 100_000,
        max_former_entities: int = 100_000,
    ) -> None:
        self.learner = learner
        self.max_entities = max_entities
        self.max_former_entities = max_former_entities

    def partial_fit(self, X: ArrayLike, entity: Names, *, batch_size: int | None = None) -> Self:
        """Learn the rows of ``X`` (m, d): one mini-batch, or several of ``batch_size`` rows.

        Raises
        ------
        InvalidInputError
            ``X`` is not a matrix of finite or missing numbers with as many columns as before, or
            ``entity`` does not have one entity for each row.
        InvalidParameterError
            A hyper-parameter or ``batch_size`` is outside its range.
        """
        require(batch_size is None or batch_size >= 1, "batch_size", batch_size, "at least 1")
        rows, keys = self._check(X, entity)
        if len(rows) == 0:
            return self
        learner, entities = self._fitted = self._fitted or self._begun()
        self._width = rows.shape[1]
        for at in _pieces(len(rows), batch_size or len(rows)):
            self._learn(learner, entities, rows[at], keys[at])
        return self

    def score_samples(self, X: ArrayLike, entity: Names) -> FloatArray:
        """Log-density (m,) of each row given its entity, in nats; missing fields marginalised.

        Raises
        ------
        InvalidInputError
            As ``partial_fit``.
        NotFittedError
            Nothing was learned yet.
        """
        found = [np.empty(0)]
        for layer, own in self._ahead(X, entity):
            mixed = layer.mix(own.rows, self.learner_.evaluate(own.rows))
            found.append(mixed.log_density + own.log_jacobian)
        return np.concatenate(found)

    def given_others(self, X: ArrayLike, entity: Names) -> Others:
        """Compare each field with its entity and the others of its row; return three arrays (m, d).

        -log p(x_i | the other fields, entity) in nats, NaN where x_i is missing; about the mean and
        the standard deviation of x_i given these.

        Raises
        ------
        InvalidInputError, NotFittedError
            As ``score_samples``.
        """
        found = []
        for layer, own in self._ahead(X, entity):
            layer.mix(own.rows, self.learner_.evaluate(own.rows))
            model = layer.conditionals(self.learner_, np.ones(len(own.rows), np.bool_))
            found.append(layer.undo_others(model.given_others(own.rows), own.rows, own.units))
        nats, mean, deviation = np.concatenate([np.empty((3, 0, self._width or 0)), *found], axis=1)
        return nats, mean, deviation

    def contributions(self, X: ArrayLike, entity: Names) -> FloatArray:
        """Return the nats (m, d) of ``given_others``: which fields make a row unusual."""
        return self.given_others(X, entity)[0]

    def expected(self, X: ArrayLike, entity: Names) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation (m, d) of ``given_others``."""
        return self.given_others(X, entity)[1:]

    def impute(self, X: ArrayLike, entity: Names) -> FloatArray:
        """Fill the missing fields of ``X`` (m, d) with the means of ``expected``."""
        rows = self._check(X, entity)[0].copy()
        missing = np.isnan(rows)
        rows[missing] = self.expected(rows, entity)[0][missing]
        return rows

    def conditional_log_density(
        self, X: ArrayLike, entity: Names, given: Sequence[int]
    ) -> FloatArray:
        """Log p(the other fields | the fields of index ``given``, entity) (m,) in nats."""
        rows = self._check(X, entity)[0]
        condition = np.full_like(rows, np.nan)
        condition[:, list(given)] = rows[:, list(given)]
        return self.score_samples(rows, entity) - self.score_samples(condition, entity)

    def sample(
        self,
        entity: Name,
        n: int = 1,
        *,
        given: ArrayLike | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> FloatArray:
        """Draw ``n`` rows (n, d), each as the next record of ``entity``.

        The observed fields of the row ``given`` are held fixed. ``random_state`` is a seed or a
        generator; without one, the network's own seed is used.

        Raises
        ------
        InvalidInputError, NotFittedError
            As ``score_samples``.
        """
        learner = self.learner_
        row = np.full(self._width or 0, np.nan) if given is None else np.asarray(given, np.float64)
        seed = learner.random_state if random_state is None else random_state
        ((layer, own),) = self._ahead(row[None], [entity])
        layer.mix(own.rows, learner.evaluate(own.rows))
        drawn = layer.draw(learner, own, n, np.random.default_rng(seed))
        return np.where(np.isnan(row), drawn, row)

    def profile(self, entity: Name) -> EntityProfile | None:
        """Return what is known of an entity; None if it is not known."""
        (key,) = as_keys([entity], 1)
        return None if self._fitted is None else self._fitted[1].profile(key)

    @property
    def n_entities_(self) -> int:
        """The number of entities that are known."""
        return 0 if self._fitted is None else len(self._fitted[1].roster)

    def _new_layer(self) -> Entities:
        return Entities(self.max_entities, self.max_former_entities)

    def _restore(self, layer: Entities, arrays: Arrays, width: int) -> int:
        layer.restore(arrays, width, 0, 0)
        expect(layer.has_begun, "entities")
        return width

    def _learn(
        self, learner: OSLRAU, entities: Entities, rows: FloatArray, keys: Sequence[Key]
    ) -> None:
        began, evaluation = entities.has_begun, None
        own = entities.take(rows, keys, *entities.roster.take(keys)).rows
        if not began:
            own = entities.begin(rows)
        else:
            evaluation = learner.evaluate(own)
            entities.mix(own, evaluation)
        if own.shape[1] <= WIDEST:
            entities.learn(own, np.ones(len(own), np.bool_))
        learner.partial_fit(own, evaluation=evaluation)
        self.n_records_ += len(rows)
        entities.update(self.n_records_, 0.0, learning=True)

    def _ahead(self, X: ArrayLike, entity: Names) -> Iterator[tuple[Entities, InUnits]]:
        """Return for some rows at a time a layer that has taken them, and them in its units."""
        entities = self._known()[1]
        rows, keys = self._check(X, entity)
        return (entities.ahead(rows[at], keys[at]) for at in _pieces(len(rows), AT_ONCE))

    def _check(self, X: ArrayLike, entity: Names) -> tuple[FloatArray, list[Key]]:
        rows = as_rows(X, self._width)
        return rows, as_keys(entity, len(rows))


def _pieces(m: int, size: int) -> Iterator[slice]:
    """Return slices of ``size`` rows that cover ``m``; the last one may have fewer."""
    return (slice(start, min(start + size, m)) for start in range(0, m, size))
