"""What a scorer knows after the last row: sizes, entities, silences, incidents, categories."""

from __future__ import annotations

import math

import numpy as np

from faust_oslrau.learner.entities.roster import Name, as_keys
from faust_oslrau.learner.scoring.block import SilentEntity
from faust_oslrau.learner.scoring.entity_events import EntityProfile
from faust_oslrau.learner.scoring.incident import Incident

from .explaining import entity_profile
from .state import ScorerState


class ScorerQueries:
    """A scorer that is asked about its state, which nothing here changes."""

    _state: ScorerState

    @property
    def n_records(self) -> int:
        """Records of the stream so far."""
        return self._state.growing.n_before + self._state.n_records

    @property
    def n_fields(self) -> int | None:
        """Columns of the stream, None before the first rows."""
        numbers = self._state.n_fields
        return None if numbers is None else numbers + self._state.n_categories

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
    def left_out(self) -> list[int]:
        """Columns that are left out: numbers that only grow, and categories that are identifiers.

        That is, whose values hardly ever come again.
        """
        state = self._state
        if state.categories is None or state.n_fields is None:
            return state.growing.columns
        identifiers = np.flatnonzero(state.categories.identifier) + state.n_fields
        return [*state.growing.columns, *identifiers.tolist()]

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
