"""The parameters of a scorer, read from its state; some of them may change while it works."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from faust_oslrau.learner.entities.watch import EVENTS, Watch
from faust_oslrau.learner.errors import InvalidParameterError
from faust_oslrau.learner.oslrau import OSLRAU
from faust_oslrau.learner.rates.layer import Rates
from faust_oslrau.learner.scoring.incident import IncidentParameters
from faust_oslrau.learner.scoring.incidents import Incidents
from faust_oslrau.learner.silence.layer import Silences

from .state import ScorerState

CHANGEABLE = (
    "learning", "alarm_rate", "incidents", "silences", "entity_events", "forecasting", "rates",
    "rates_by",
)  # fmt: skip
"""Parameters that may change while a scorer works."""


class ScorerParameters:
    """A scorer whose parameters are in its state; `StreamScorer` explains them.

    Those with a setter may change while the scorer works.
    """

    _state: ScorerState

    def change_as(self, other: ScorerParameters) -> None:
        """Take the parameters that may change from another scorer."""
        for name in CHANGEABLE:
            setattr(self, name, getattr(other, name))

    @property
    def learner(self) -> OSLRAU:
        """The density model."""
        return self._state.learner

    @property
    def batch_size(self) -> int:
        """Records of a learning batch."""
        return self._state.batch_size

    @property
    def alarm_rate(self) -> float:
        """Largest p-value of an anomaly; a new value applies from the next row on."""
        return self._state.alarm_rate

    @alarm_rate.setter
    def alarm_rate(self, rate: float) -> None:
        if rate != self.alarm_rate:
            self._state.alarm_at(rate)

    @property
    def learning(self) -> bool:
        """Whether the learner learns; a new value applies from the next boundary on."""
        return self._state.learning

    @learning.setter
    def learning(self, learning: bool) -> None:
        self._state.learning = learning

    @property
    def parameters(self) -> dict[str, Any]:
        """What log-likelihoods and p-values depend on beside the learner and the stream."""
        state, entities = self._state, self._state.entities
        return {
            "batch_size": state.batch_size,
            "transforms": state.transforms.names,
            "n_categories": state.n_categories,
            "max_entities": None if entities is None else entities.roster.limit,
            "max_former_entities": None if entities is None else entities.former.limit,
            "history": None if state.history is None else state.history.names,
            "seasons": None if state.seasons is None else state.seasons.zone,
            "adapt_after": state.reference.adapt_after,
            "directions": state.relevance.directions,
            "least": state.relevance.least,
        }

    @property
    def needs_times(self) -> bool:
        """Whether anything but incidents depends on the rows' time stamps."""
        state = self._state
        is_timed = state.history is not None and state.history.is_timed
        return is_timed or state.seasons is not None or self.silences or self.rates is not None

    @property
    def incidents(self) -> IncidentParameters | None:
        """When incidents open and close; a new value applies from the next row on."""
        return None if self._state.incidents is None else self._state.incidents.parameters

    @incidents.setter
    def incidents(self, parameters: IncidentParameters | None) -> None:
        if parameters is None:
            self._state.incidents = None
        elif self._state.incidents is None:
            self._state.incidents = Incidents(parameters)
        else:
            self._state.incidents.parameters = parameters

    @property
    def silences(self) -> bool:
        """Whether silences are looked for; a new value applies from the next row on."""
        return self._state.silences is not None

    @silences.setter
    def silences(self, wanted: bool) -> None:
        if wanted != self.silences:
            self._state.silences = Silences() if wanted else None

    @property
    def rates(self) -> float | None:
        """Seconds of the windows whose records are counted; a new value begins with the next row.

        Hours are those of the zone of ``seasons``, else of UTC.
        """
        return None if self._state.rates is None else self._state.rates.seconds

    @rates.setter
    def rates(self, seconds: float | None) -> None:
        self._count(seconds, self.rates_by)

    @property
    def rates_by(self) -> str | None:
        """The field whose values ``process`` is given as groups, None for entities.

        With a new value, counting begins anew with the next row. It means nothing without
        ``rates``.
        """
        return None if self._state.rates is None else self._state.rates.by

    @rates_by.setter
    def rates_by(self, field: str | None) -> None:
        self._count(self.rates, field)

    def _count(self, seconds: float | None, by: str | None) -> None:
        if (seconds, by) == (self.rates, self.rates_by):
            return
        zone = "UTC" if self._state.seasons is None else self._state.seasons.zone
        self._state.rates = None if seconds is None else Rates(seconds, zone, by)

    @property
    def forecasting(self) -> bool:
        """Whether blocks have forecasts; a new value applies from the next row on."""
        return self._state.forecasting

    @forecasting.setter
    def forecasting(self, wanted: bool) -> None:
        self._state.forecasting = wanted

    @property
    def entity_events(self) -> Sequence[str]:
        """What is told of entities; a new value applies from the next row on."""
        return () if self._state.entities is None else self._state.entities.watch.events

    @entity_events.setter
    def entity_events(self, events: Sequence[str]) -> None:
        entities = self._state.entities
        wrong = set(events) - set(EVENTS)
        if wrong or (events and entities is None):
            raise InvalidParameterError(
                f"entity_events: expected some of {', '.join(EVENTS)} with max_entities, "
                f"got {', '.join(sorted(events))}"
            )
        if entities is not None and set(events) != set(self.entity_events):
            entities.watch = Watch(events)
