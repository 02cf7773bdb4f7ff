"""The scores of the records of one call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np

from faust_oslrau.learner.arrays import FloatArray, IntArray, Mask

from .blame import Blame
from .clock import TIME, plausible
from .drift import Change
from .entity_events import EntityEvent
from .incident import IncidentEvent

BAND = 0.01, 0.99
"""Levels of the quantiles between which a field, or a number of records, is as expected."""


class Forecast(NamedTuple):
    """What is expected of each field of m records before they come, in the fields' own units.

    NaN while there is no model, and for a field that was never observed.

    Attributes
    ----------
    expected
        Mean (m, d); with units of an entity or a transform, that in these units, transformed back.
    low, high
        Quantiles (m, d) at 1 % and 99 %.
    """

    expected: FloatArray
    low: FloatArray
    high: FloatArray


BEGAN, ENDED = "began", "ended"
"""States of a silence, and of a change of a rate, in their events."""


class SilentEntity(NamedTuple):
    """An entity that is silent for too long.

    Attributes
    ----------
    entity
        Its name.
    last_timestamp
        The time stamp of its last record in milliseconds since 1970 (UTC).
    limit
        The seconds after which its silence was too long.
    """

    entity: str
    last_timestamp: int
    limit: float


class Silence(NamedTuple):
    """A silence that was too long, as a row of a block shows it.

    Attributes
    ----------
    row
        The row whose time stamp shows it, or that ends it.
    state
        ``began`` or ``ended``.
    entity
        The name of the silent entity; None for the partition.
    last_offset, last_timestamp
        The last record before the silence.
    seconds
        How long it has lasted. That of an entity does not count silences of the partition.
    limit
        The seconds after which it was too long.
    """

    row: int
    state: str
    entity: str | None
    last_offset: int
    last_timestamp: int
    seconds: float
    limit: float


class RateChange(NamedTuple):
    """A change of how many records come, as a row of a block shows it.

    Attributes
    ----------
    row
        The row whose time stamp ends the window.
    state
        ``began`` or ``ended``.
    entity
        The name of the entity, or of the group; None for the partition.
    by
        The name of the field whose values are the groups; None for entities and the partition.
    since
        When the first window began that speaks for it, in milliseconds since 1970 (UTC).
    seconds
        The length of a window.
    records
        Records in the window that has ended.
    expected
        How many were expected.
    low, high
        Between how many is usual: quantiles at 1 % and 99 %.
    """

    row: int
    state: str
    entity: str | None
    by: str | None
    since: int
    seconds: float
    records: int
    expected: float
    low: int
    high: int


class ChangedRate(NamedTuple):
    """An entity, a group or the partition whose records come more or less often than usual.

    Attributes
    ----------
    entity, by, since
        As `RateChange` has them.
    factor
        Times as many records as usual, about.
    """

    entity: str | None
    by: str | None
    since: int
    factor: float


Event = TypeVar("Event", IncidentEvent, EntityEvent, Silence, RateChange)


def moved(events: Iterable[Event], n: int) -> list[Event]:
    """Return events ``n`` rows later."""
    return [event._replace(row=n + event.row) for event in events]


@dataclass(slots=True)  # frozen ones take three times as long to make
class ScoredBlock:
    """Scores of the m rows of one call, with what the call learned and how long it took.

    Attributes
    ----------
    log_likelihood
        Log-density (m,) in nats, NaN while there is no model.
    p_value
        Share of the recent stream that was at least as unusual (m,), NaN where unknown.
    is_anomaly
        Whether the p-value is at most the alarm rate (m,).
    n_learned
        Records that the model had learned when it scored the row (m,).
    warming_up
        Whether the row is among the stream's first 240 (m,).
    blame
        The fields of the anomalous rows, in order, the most to blame first.
    drift
        How far scores have fallen compared with earlier ones, in [0, inf), after the call. At 1
        there is an event, and the statistic starts again at 0.
    changes
        The events, and the position of the row at whose boundary each was found.
    incidents
        Incidents that opened, changed or closed, in the order of the rows.
    learned
        Records learned during the call.
    held_back
        Records that were not learned during the call, as their scores were far below all usual
        ones. They are learned later if more of them come.
    score_seconds, learn_seconds
        Time that scoring and learning took.
    entity_events
        Entities that are new, or became unusual as a whole, in the order of the rows.
    silences
        Silences that began or ended, in the order of the rows.
    rate_changes
        Changes of how many records come that began or ended, in the order of the rows.
    forecast
        What was expected of each row before it came; None unless it is asked for.
    """

    log_likelihood: FloatArray
    p_value: FloatArray
    is_anomaly: Mask
    n_learned: IntArray
    warming_up: Mask
    blame: Blame
    drift: float
    changes: tuple[tuple[int, Change], ...]
    incidents: tuple[IncidentEvent, ...]
    learned: int
    held_back: int
    score_seconds: float
    learn_seconds: float
    entity_events: tuple[EntityEvent, ...] = ()
    silences: tuple[Silence, ...] = ()
    rate_changes: tuple[RateChange, ...] = ()
    forecast: Forecast | None = None

    @property
    def contributions(self) -> FloatArray:
        """-log p(x_i | the fields not to blame) of the anomalous rows (n_anomalous, d).

        NaN for the fields that are not to blame. They do not add up to the log-density, as the
        fields to blame are not independent of each other.
        """
        return self.blame.nats

    def after(self, n: int) -> ScoredBlock:
        """Return the block after ``n`` rows that warm up without a model."""
        missing = np.full(n, np.nan)
        return replace(
            self,
            log_likelihood=np.concatenate([missing, self.log_likelihood]),
            p_value=np.concatenate([missing, self.p_value]),
            is_anomaly=np.pad(self.is_anomaly, (n, 0)),
            n_learned=np.pad(self.n_learned, (n, 0)),
            warming_up=np.pad(self.warming_up, (n, 0), constant_values=True),
            changes=tuple((n + position, change) for position, change in self.changes),
            incidents=tuple(moved(self.incidents, n)),
            entity_events=tuple(moved(self.entity_events, n)),
            silences=tuple(moved(self.silences, n)),
            rate_changes=tuple(moved(self.rate_changes, n)),
            forecast=None
            if self.forecast is None
            else Forecast(*(_after_missing(n, part) for part in self.forecast)),
        )


def _after_missing(n: int, part: FloatArray) -> FloatArray:
    return np.concatenate([np.full((n, part.shape[1]), np.nan), part])


class BlockMaker:
    """Collects the scores of one call, for a `ScoredBlock`.

    Parameters
    ----------
    given
        The rows (m, d) as given to the call.
    places
        Their numbers in the stream, offsets and timestamps (m, 3).
    moments
        What the partition's clock says before them and after each (m + 1, 2).
    keys
        Their entities, empty without any.
    """

    def __init__(
        self,
        given: FloatArray,
        places: IntArray,
        moments: IntArray,
        keys: Sequence[bytes | None] = (),
        groups: Sequence[bytes | None] = (),
    ) -> None:
        m, d = given.shape
        self.given = given
        self.places = places
        self.moments = moments
        self.now = moments[1:, TIME]
        self.times = plausible(places[:, 2], self.now)
        self.keys = keys
        self.groups = groups
        self.log_likelihood = np.full(m, np.nan)
        self.p_value = np.full(m, np.nan)
        self.is_anomaly = np.zeros(m, np.bool_)
        self.n_learned = np.zeros(m, np.int64)
        self.warming_up = np.zeros(m, np.bool_)
        self.blame = [Blame.none(d)]
        self.changes: list[tuple[int, Change]] = []
        self.incidents: list[IncidentEvent] = []
        self.entity_events: list[EntityEvent] = []
        self.learned = 0
        self.held_back = 0
        self.silences: list[Silence] = []
        self.rate_changes: list[RateChange] = []
        self.forecasts: list[Forecast] = []
        self.score_seconds = 0.0
        self.learn_seconds = 0.0

    def finish(self, drift: float) -> ScoredBlock:
        """Return the block, with the drift statistic after it."""
        return ScoredBlock(
            log_likelihood=self.log_likelihood,
            p_value=self.p_value,
            is_anomaly=self.is_anomaly,
            n_learned=self.n_learned,
            warming_up=self.warming_up,
            blame=Blame.joined(self.blame),
            drift=drift,
            changes=tuple(self.changes),
            incidents=tuple(self.incidents),
            learned=self.learned,
            held_back=self.held_back,
            score_seconds=self.score_seconds,
            learn_seconds=self.learn_seconds,
            entity_events=tuple(self.entity_events),
            silences=tuple(self.silences),
            rate_changes=tuple(self.rate_changes),
            forecast=Forecast(*map(np.concatenate, zip(*self.forecasts, strict=True)))
            if self.forecasts
            else None,
        )
