"""What a scorer knows after the last row: sizes, entities, silences, incidents, categories."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.entities.roster import Name, as_keys
from faust_oslrau.learner.errors import InvalidInputError
from faust_oslrau.learner.scoring.block import ChangedRate, Forecast, SilentEntity
from faust_oslrau.learner.scoring.entity_events import EntityProfile
from faust_oslrau.learner.scoring.incident import Incident, IncidentEvent

from .explaining import entity_profile, expected_range
from .forecasting import forecast_next
from .given import checked, keys_of, transformed
from .state import ScorerState


class ScorerQueries:
    """A scorer that is asked about its state, which nothing here changes."""

    _state: ScorerState

    @property
    def n_records(self) -> int:
        """Records of the stream so far."""
        return self._state.n_records

    @property
    def n_fields(self) -> int | None:
        """Columns of the stream, None before the first rows."""
        numbers = self._state.n_numbers
        return None if numbers is None else numbers + self._state.n_categories

    def expected_range(self, X: ArrayLike, deviations: float) -> tuple[FloatArray, FloatArray]:
        """Return the range (m, d) in which the model expects each field of some rows (m, d).

        That is so many standard deviations below and above its mean, given the fields of the row
        that are not to blame. NaN without a model, and with ``max_entities``, ``seasons`` or
        ``history``.
        Nothing is scored or learned, and no later score depends on it.

        Raises
        ------
        InvalidInputError
            As ``process``.
        """
        given = checked(self._state, self.n_fields, X)
        return expected_range(self._state, transformed(self._state, given), deviations)

    def forecast(
        self, entity: Sequence[Name] | None = None, timestamps: ArrayLike | None = None
    ) -> Forecast:
        """Return what is expected of the next record: k rows, and one without arguments.

        With ``max_entities``, ``entity`` (k,) has the entities of whose next records it tells.
        ``timestamps`` (k,) in milliseconds are when these come, which counts with ``seasons``; by
        default when the latest row came. Means and quantiles are in the fields' own units, and
        those of the density that log-likelihoods tell: given the running means of a history, the
        entity's level, scale and habits, the hour. Nothing is scored or learned.

        Raises
        ------
        InvalidInputError
            There is not one entity for each time stamp, or one without ``max_entities``, or none
            with it.
        """
        k = len(entity) if entity is not None else 1 if timestamps is None else np.size(timestamps)
        times = np.full(k, -1) if timestamps is None else np.asarray(timestamps, np.int64)
        if times.shape != (k,):
            raise InvalidInputError(f"timestamps: expected {k} of them, got shape {times.shape}")
        return forecast_next(self._state, keys_of(self._state, entity, k), times)

    @property
    def n_entities(self) -> int:
        """The number of entities whose usual values are known."""
        return 0 if self._state.entities is None else len(self._state.entities.roster)

    @property
    def n_former_entities(self) -> int:
        """The number of entities that gave way whose levels and scales are kept."""
        return 0 if self._state.entities is None else len(self._state.entities.former)

    @property
    def n_evicted(self) -> int:
        """The number of entities that gave way to others since this object exists."""
        return 0 if self._state.entities is None else self._state.entities.roster.evicted

    @property
    def n_silent(self) -> int:
        """The number of entities that are silent for too long after the last row."""
        return 0 if self._state.silences is None else self._state.silences.n_silent

    def silent_entities(self, most: int) -> list[SilentEntity]:
        """Return up to ``most`` entities that are silent for too long, the longest silent first."""
        return [] if self._state.silences is None else self._state.silences.silent(most)

    def changed_rates(self, most: int) -> list[ChangedRate]:
        """Return up to ``most`` rates that are not as usual, those that changed first."""
        return [] if self._state.rates is None else self._state.rates.changed(most)

    @property
    def silence_limit(self) -> float | None:
        """The seconds after which a silence of the partition is too long; None if unknown."""
        limit = math.inf if self._state.silences is None else self._state.silences.limit
        return limit if limit < math.inf else None

    @property
    def open_incidents(self) -> list[Incident]:
        """The incidents that are open after the last row, the oldest first."""
        held = {} if self._state.incidents is None else self._state.incidents.open
        return [each.incident for each in held.values()]

    def told_incidents(self, state: str) -> list[IncidentEvent]:
        """Return an event with this state, at row 0, of each open incident, the oldest first."""
        return [] if self._state.incidents is None else self._state.incidents.told(state)

    def entity_profile(self, entity: Name) -> EntityProfile | None:
        """Return what is known of an entity; None if it is not known, or without ``max_entities``.

        ``entity`` is one of those of ``process``.
        """
        (key,) = as_keys([entity], 1)
        return entity_profile(self._state, key)

    def search_entities(self, part: str, most: int) -> list[str]:
        """Return up to ``most`` names of known entities that contain a part, the exact one first.

        Names of more than 31 bytes are found as a whole only.
        """
        if self._state.entities is None:
            return []
        found = self._state.entities.roster.search(part.encode(), most)
        return [name.decode(errors="replace") for name in found]

    @property
    def n_days(self) -> int | None:
        """The number of whole days that patterns are learned from; None without `seasons`."""
        return None if self._state.seasons is None else self._state.seasons.n_days

    def learned_names(self, fields: Sequence[str]) -> list[str]:
        """Return the names of the columns that the learner is given, by those of the stream's."""
        state = self._state
        names = list(fields[: len(fields) - state.n_categories]) or ["no number"]
        spans = () if state.history is None else state.history.names
        return names + [f"{name}, mean of {span}" for span in spans for name in names]

    def dependences(self, fields: Sequence[str]) -> dict[str, list[str]]:
        """Return the categories that each of the stream's fields depends on, for those with any."""
        categories = self._state.categories
        if categories is None or not categories.has_begun:
            return {}
        own, names = fields[len(fields) - categories.c :], categories.parents()[-len(fields) :]
        return {field: [own[f] for f in of] for field, of in zip(fields, names, strict=True) if of}

    def category_codes(self) -> list[float]:
        """Return the categories that blame may name from now on, in ascending order."""
        state = self._state
        if state.categories is None:
            return []
        named = [state.categories.codes(), np.empty(0)]
        if state.incidents is not None:
            named += [blame.categories(state.n_categories) for blame in state.incidents.blames]
        found = np.unique(np.concatenate(named))
        return [float(code) for code in found if not math.isnan(code)]

    def common_entity(self, other: ScorerQueries, most: int = 1024) -> bytes | None:
        """Return an entity that another scorer knows, too, among up to ``most``; None if none is.

        One with a name of more than 31 bytes comes as its digest.
        """
        mine, others = self._state.entities, other._state.entities
        return None if mine is None or others is None else mine.roster.common(others.roster, most)
