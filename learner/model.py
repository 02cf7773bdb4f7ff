"""What every model has: mini-batches, hyper-parameters by name, a state as bytes."""

from __future__ import annotations

from typing import Self

from numpy.typing import ArrayLike

from faust_oslrau.learner.arrays import Arrays, FloatArray

from .errors import StateError
from .parameters import Parameters, require
from .queries.density import Evaluation
from .state import pack, record_count, unpack


class Model(Parameters):
    """A density that learns a stream of records."""

    def partial_fit(
        self,
        X: ArrayLike,
        y: None = None,
        *,
        batch_size: int | None = None,
        evaluation: Evaluation | None = None,
    ) -> Self:
        """Learn the rows of ``X`` (m, d): one mini-batch, or several of ``batch_size`` rows.

        With an ``evaluation`` of these rows by ``evaluate`` they are not evaluated again; the bits
        are the same. An evaluation of other rows, by another model, or older than what the model
        has learned since is ignored.

        Raises
        ------
        InvalidInputError
            ``X`` is not a matrix of finite or missing numbers with as many columns as before.
        InvalidParameterError
            A hyper-parameter or ``batch_size`` is outside its range.
        """
        require(batch_size is None or batch_size >= 1, "batch_size", batch_size, "at least 1")
        rows = self._check(X)
        if len(rows) > 0:
            self._learn_rows(rows, batch_size or len(rows), evaluation)
        return self

    def to_bytes(self) -> bytes:
        """Write the whole model, so that learning continues from it to the same bits."""
        values = {"parameters": self.plain_params(), "n_records": self.n_records_}
        return pack(self.state_kind, values, self._arrays())

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a model that ``to_bytes`` wrote.

        Raises
        ------
        StateError
            The bytes are damaged, of another format version, or not those of a model.
        """
        values, arrays = unpack(data, cls.state_kind)
        try:
            model = cls(**values["parameters"])
            model.check_parameters()
            model.n_records_ = record_count(values["n_records"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise StateError(f"state: expected the parameters of a model, {error}") from error
        if arrays:
            model._restore(arrays)
        return model

    def _check(self, X: ArrayLike) -> FloatArray:
        """Return ``X`` as rows (m, d)."""
        raise NotImplementedError

    def _learn_rows(self, rows: FloatArray, batch_size: int, evaluation: Evaluation | None) -> None:
        """Learn at least one row, in mini-batches of ``batch_size``."""
        raise NotImplementedError

    def _arrays(self) -> Arrays:
        """Return what ``_restore`` needs; nothing before anything was learned."""
        raise NotImplementedError

    def _restore(self, arrays: Arrays) -> None:
        raise NotImplementedError
