"""What estimators of a network in units of a layer share: hyper-parameters, fitted parts, bytes."""

from __future__ import annotations

from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from faust_oslrau.learner.arrays import Arrays

from .errors import NotFittedError, StateError
from .oslrau import OSLRAU
from .parameters import Parameters
from .state import pack, record_count, unpack
from .state_schema import check_types, expect


class Layer(Protocol):
    """What changes rows before the network learns them."""

    def state(self) -> Arrays:
        """Return all that it knows, as arrays."""
        ...


L = TypeVar("L", bound=Layer)


class LayeredDensity(Parameters, Generic[L]):
    """A density whose network knows rows in units of a layer only.

    Its hyper-parameters are those of the layer, whole numbers all, and the ``learner``, whose
    hyper-parameters the network has; None for ``OSLRAU()``.
    """

    learner: OSLRAU | None
    _fitted: tuple[OSLRAU, L] | None = None
    _width: int | None = None

    def check_parameters(self) -> None:
        """Raise InvalidParameterError for a hyper-parameter outside its range."""
        self._begun()

    @property
    def learner_(self) -> OSLRAU:
        """The network; NotFittedError before the first mini-batch."""
        return self._known()[0]

    def to_bytes(self) -> bytes:
        """Write the whole model, so that learning continues from it to the same bits."""
        learner, layer = self._fitted or self._begun()
        own = {name: int(value) for name, value in self._layer_params().items()}
        values = own | {"n_records": self.n_records_, "n_fields": self._width}
        network = np.frombuffer(learner.to_bytes(), np.uint8)
        return pack(self.state_kind, values, {"learner": network, **layer.state()})

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what ``to_bytes`` wrote.

        Raises
        ------
        StateError
            The bytes are damaged, of another format version, or not those of a model.
        """
        values, arrays = unpack(data, cls.state_kind)
        try:
            network = OSLRAU.from_bytes(arrays["learner"].tobytes())
            own = {name: values[name] for name in cls()._layer_params()}
            check_types(values, {"n_fields": (int, type(None)), **dict.fromkeys(own, (int,))})
            model = cls().set_params(learner=network.untrained(), **own)
            model.n_records_, model._width = record_count(values["n_records"]), values["n_fields"]
            both = (model._width is not None) == (network.n_records_ > 0)
            expect(both, "a network that knows as much as its layer")
            layer = model._begun()[1]
            if model._width is not None:
                columns = model._restore(layer, arrays, model._width)
                network.score_samples(np.empty((0, columns)))
                model._fitted = network, layer
        except StateError:
            raise
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            raise StateError(f"state: expected that of {cls.state_kind}, {error}") from error
        return model

    def _layer_params(self) -> dict[str, Any]:
        own = self.get_params(deep=False)
        del own["learner"]
        return own

    def _begun(self) -> tuple[OSLRAU, L]:
        learner = OSLRAU() if self.learner is None else self.learner.untrained()
        learner.check_parameters()
        return learner, self._new_layer()

    def _known(self) -> tuple[OSLRAU, L]:
        if self._fitted is None:
            raise NotFittedError
        return self._fitted

    def _new_layer(self) -> L:
        raise NotImplementedError

    def _restore(self, layer: L, arrays: Arrays, width: int) -> int:
        """Restore a layer of rows of ``width`` columns; return the columns that it has made."""
        raise NotImplementedError
