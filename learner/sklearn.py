"""oSLRAU and its relatives as a scikit-learn density estimator; needs the extra ``sklearn``."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from faust_oslrau.learner.arrays import FloatArray

from .categories.density import CategoricalDensity
from .entities.density import EntityDensity, Names
from .errors import InvalidInputError, InvalidParameterError
from .oslrau import OSLRAU

try:
    from sklearn.base import BaseEstimator, DensityMixin, clone
    from sklearn.utils import Tags
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"{__name__} needs scikit-learn: pip install 'faust-oslrau[sklearn]'", name=error.name
    ) from error

Density = OSLRAU | EntityDensity | CategoricalDensity


class OSLRAUDensity(DensityMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Density estimator for pipelines, cross-validation and grid search.

    Parameters
    ----------
    learner
        The model whose hyper-parameters to use, None for ``OSLRAU()``; a grid names them
        ``learner__corr_threshold`` and so on. With an ``EntityDensity``, ``entity`` has the entity
        of each row; without ``entity``, all rows belong to one. With a ``CategoricalDensity``, the
        last columns are categories, as an ``OrdinalEncoder`` makes them of texts.
    batch_size
        Rows of a mini-batch of ``fit``, at least 1.

    Attributes
    ----------
    learner_
        The fitted model, for all its other queries.
    n_features_in_, feature_names_in_
        Number of columns d, and their names where ``X`` had any.

    Notes
    -----
    ``X`` is (m, d), NaN = missing. The order of the rows matters: one pass, as in a stream.
    ``entity`` is sample-aligned metadata: ``set_fit_request(entity=True)`` and
    ``set_score_request(entity=True)`` have it routed through pipelines and cross-validation.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV
    >>> from faust_oslrau.learner import OSLRAU
    >>> from faust_oslrau.learner.sklearn import OSLRAUDensity
    >>> X = np.random.default_rng(0).normal(size=(600, 2)) @ [[1.0, 0.9], [0.0, 0.1]]
    >>> density = OSLRAUDensity(OSLRAU(), batch_size=100)
    >>> search = GridSearchCV(density, {"learner__n_init_components": [1, 2]}, cv=2).fit(X)
    >>> search.best_estimator_.sample(5).shape
    (5, 2)
    >>> search.best_estimator_.learner_.n_records_
    600
    """

    def __init__(self, learner: Density | None = None, *, batch_size: int = 256) -> None:
        self.learner = learner
        self.batch_size = batch_size

    def fit(self, X: ArrayLike, y: object = None, entity: Names | None = None) -> Self:
        """Forget everything, then learn the rows of ``X`` in mini-batches of ``batch_size``."""
        rows, learner = self._check(X, reset=True), self._new_learner()
        of = _entity_of(learner, entity, len(rows))
        self.learner_ = learner.partial_fit(rows, **of, batch_size=self.batch_size)
        return self

    def partial_fit(self, X: ArrayLike, y: object = None, entity: Names | None = None) -> Self:
        """Learn the rows of ``X`` as one mini-batch."""
        is_first = not hasattr(self, "learner_")
        rows = self._check(X, reset=is_first)
        learner = self._new_learner() if is_first else self.learner_
        self.learner_ = learner.partial_fit(rows, **_entity_of(learner, entity, len(rows)))
        return self

    def score_samples(self, X: ArrayLike, entity: Names | None = None) -> FloatArray:
        """Log-density (m,) of each row in nats, missing values marginalised."""
        check_is_fitted(self)
        rows = self._check(X, reset=False)
        of = _entity_of(self.learner_, entity, len(rows))
        log_density: FloatArray = self.learner_.score_samples(rows, **of)
        return log_density

    def score(self, X: ArrayLike, y: object = None, entity: Names | None = None) -> float:
        """Mean log-density of the rows in nats (as in scikit-learn's mixtures)."""
        return float(self.score_samples(X, entity).mean())

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.Generator | None = None
    ) -> FloatArray:
        """Draw rows (n_samples, d); without a ``random_state``, the learner's is used.

        Not with an ``EntityDensity``: ask the ``sample`` of ``learner_`` for rows of an entity.
        """
        check_is_fitted(self)
        if isinstance(self.learner_, EntityDensity):
            raise InvalidParameterError("learner: expected no EntityDensity, to draw rows")
        rows: FloatArray = self.learner_.sample(n_samples, random_state=random_state)
        return rows

    def _new_learner(self) -> Any:
        return OSLRAU() if self.learner is None else clone(self.learner)

    def _check(self, X: ArrayLike, *, reset: bool) -> Any:
        return validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan")

    def __sklearn_tags__(self) -> Tags:
        """Declare that missing values are accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _entity_of(learner: Density, entity: Names | None, m: int) -> dict[str, Any]:
    """Return the keyword with the entities of ``m`` rows, none for a learner without entities."""
    if isinstance(learner, EntityDensity):
        return {"entity": [None] * m if entity is None else entity}
    if entity is not None:
        raise InvalidInputError("entity: expected none, as learner is no EntityDensity")
    return {}
