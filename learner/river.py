"""oSLRAU and its relatives as a River anomaly detector; needs the extra ``river``."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from hashlib import blake2b
from numbers import Integral, Real
from typing import Any

import numpy as np

from faust_oslrau.learner.arrays import FloatArray

from .categories.density import CategoricalDensity
from .entities.density import EntityDensity
from .entities.roster import as_keys
from .errors import InvalidInputError
from .keys import Key
from .oslrau import OSLRAU
from .parameters import require
from .stream import FIRST_BATCH

try:
    from river.base import AnomalyDetector
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"{__name__} needs River: pip install 'faust-oslrau[river]'", name=error.name
    ) from error


class OSLRAUAnomaly(AnomalyDetector):
    """Anomaly detector whose score is minus the log-density, in nats: high = anomalous.

    Records are learned in mini-batches of 16, 32, 64, ... up to ``batch_size``, so that a score
    depends on the order of the records alone. A field that a record lacks, or that is None or
    NaN, is missing and marginalised. Scores have no bounds: ``metrics.RollingROCAUC`` ranks them,
    ``metrics.ROCAUC`` expects them in [0, 1].

    Parameters
    ----------
    learner
        The model whose hyper-parameters to use; None for ``OSLRAU()``, with ``entity`` for
        ``EntityDensity()``.
    batch_size
        Records of a mini-batch, at least 1.
    fields
        Names of the fields, whatever order they come in; None takes those of the first
        mini-batch. Others are left out.
    entity
        Name of the field that says which device, customer or service a record belongs to: a text, a
        whole number or bytes. What is usual for that one counts. None for no entities.
    categories
        Names of the fields without order, such as a service or a status: a text, a whole number,
        bytes or a boolean. With a ``CategoricalDensity`` of as many, which is the default then.
        None for none; not together with ``entity``.

    Examples
    --------
    >>> from river import datasets, preprocessing
    >>> from faust_oslrau.learner.river import OSLRAUAnomaly
    >>> detector = preprocessing.StandardScaler() | OSLRAUAnomaly(batch_size=64)
    >>> for x, _ in datasets.TrumpApproval():
    ...     score = detector.score_one(x)
    ...     detector.learn_one(x)
    >>> detector.score_one({"rasmussen": 99.0}) > detector.score_one({"rasmussen": 44.0})
    True
    """

    def __init__(
        self,
        learner: OSLRAU | EntityDensity | CategoricalDensity | None = None,
        batch_size: int = 256,
        fields: Sequence[Hashable] | None = None,
        entity: Hashable | None = None,
        categories: Sequence[Hashable] | None = None,
    ) -> None:
        require(batch_size >= 1, "batch_size", batch_size, "at least 1")
        self._categories = tuple(categories or ())
        c = len(self._categories)
        alone = entity is None or c == 0
        require(alone, "categories", categories, "none together with an entity")
        self._learner: Any = (learner or _default(entity, c)).untrained()
        has_entities = isinstance(self._learner, EntityDensity)
        require(
            has_entities == (entity is not None), "entity", entity, "with an EntityDensity only"
        )
        as_many = getattr(self._learner, "n_categories", 0) == c
        require(as_many, "categories", categories, "as many as a CategoricalDensity has")
        self.learner = learner
        self.batch_size = batch_size
        self.fields = fields
        self.entity = entity
        self.categories = categories
        self._columns = None if fields is None else tuple(fields)
        self._pending: list[dict[Hashable, float]] = []
        self._entities: list[Key] = []
        self._next_batch = min(FIRST_BATCH, batch_size)

    def learn_one(self, x: dict[Hashable, Any]) -> None:
        """Collect a record, and learn the collected ones once they are a mini-batch.

        Raises
        ------
        InvalidInputError
            A field holds something else than a finite number, None or NaN; or that of the entity or
            of a category something else than what it may be.
        """
        if not self._names(x):
            return
        numbers, entity = self._numbers(x), self._entity(x)
        self._pending.append(numbers)
        self._entities += entity
        if len(self._pending) >= self._next_batch:
            if self._columns is None:
                names: set[Hashable] = set().union(*self._pending)
                self._columns = tuple(sorted(names - set(self._categories), key=repr))
            self._learner.partial_fit(self._matrix(self._pending), **self._of(self._entities))
            self._pending, self._entities = [], []
            self._next_batch = min(2 * self._next_batch, self.batch_size)

    def score_one(self, x: dict[Hashable, Any]) -> float:
        """Return minus the log-density of a record, 0 before anything was learned.

        Raises
        ------
        InvalidInputError
            As ``learn_one``.
        """
        if self._learner.n_records_ == 0:
            return 0.0
        row = self._matrix([self._numbers(x)])
        return -float(self._learner.score_samples(row, **self._of(self._entity(x)))[0])

    def _numbers(self, x: Mapping[Hashable, Any]) -> dict[Hashable, float]:
        """Return the numbers of a record, and those that stand for its categories."""
        fields = self._names(x) if self._columns is None else self._columns
        own = self._categories
        numbers = {name: _number(name, x.get(name)) for name in fields if name not in own}
        return numbers | {name: _code(name, x.get(name)) for name in own}

    def _names(self, x: Mapping[Hashable, Any]) -> Collection[Hashable]:
        return x.keys() if self.entity is None else x.keys() - {self.entity}

    def _entity(self, x: Mapping[Hashable, Any]) -> list[Key]:
        """Return the entity that a record names, none without entities."""
        return [] if self.entity is None else as_keys([x.get(self.entity)], 1)

    def _of(self, entities: Sequence[Key]) -> dict[str, Any]:
        return {} if self.entity is None else {"entity": entities}

    def _matrix(self, records: Sequence[Mapping[Hashable, float]]) -> FloatArray:
        columns = (*(self._columns or ()), *self._categories)
        return np.array([[record.get(field, np.nan) for field in columns] for record in records])


def _default(
    entity: Hashable | None, n_categories: int
) -> OSLRAU | EntityDensity | CategoricalDensity:
    if entity is not None:
        return EntityDensity()
    return CategoricalDensity(n_categories=n_categories) if n_categories else OSLRAU()


def _code(field: Hashable, value: object) -> float:
    """Return the number that stands for a category: a hash of what it is."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return math.nan
    if not isinstance(value, str | bytes | Integral | np.bool_):
        raise InvalidInputError(
            f"{field}: expected a text, a whole number, bytes, a boolean or None, got {value!r}"
        )
    content = value if isinstance(value, bytes) else str(value).encode()
    return float(int.from_bytes(blake2b(content, digest_size=6).digest()))


def _number(field: Hashable, value: object) -> float:
    if value is None:
        return math.nan
    if not isinstance(value, Real | np.bool_) or math.isinf(value):
        raise InvalidInputError(f"{field}: expected a finite number, None or NaN, got {value!r}")
    return float(value)
