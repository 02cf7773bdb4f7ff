"""StreamScorer: scores of a partition's records that depend on these records alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .entities.layer import Entities, OwnRows
from .entities.roster import Key, as_keys
from .errors import InvalidInputError, InvalidParameterError, StateError, StateVersionError
from .oslrau import OSLRAU
from .protocol import Learner, Measured
from .scoring.blame import Blame, blame
from .scoring.block import BlockMaker, ScoredBlock
from .scoring.calibration import Calibration, RecentScores
from .scoring.comparison import Conditionals, excess_alone
from .scoring.drift import Drift
from .scoring.first_alarms import FirstAlarms
from .scoring.guard import FEWEST_SCORES, Guard, fence
from .scoring.incidents import Incident, IncidentParameters, Incidents, has_evidence
from .scoring.missing import Missing, stretch
from .scoring.neighbours import Neighbours
from .scoring.ranges import Ranges
from .scoring.ranking import Ranking
from .scoring.tail_mass import TailMass
from .scoring.transforms import Transforms
from .state import pack, record_count, unpack

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FIRST_BATCH = 16
"""Records of the first learning batch; each next one is twice as long, up to the batch size."""

WARM_UP = 240
"""Records whose scores are flagged as warming up: the first four batches, 16 to 128."""

STATE_FORMAT = 6
"""Format of the scorer's own state. A state of another format is refused: the log must be learned
again."""


class StreamScorer:
    """Scores one partition's valid records in order and learns from them.

    Learning happens at boundaries counted in records from the partition's start, after 16, 48,
    112, 240, ... and then every ``batch_size``; a record is scored by the model as it stood at
    the last boundary before it. Any cutting of the stream into calls gives the same bits.

    Parameters
    ----------
    learner
        The density model; nothing else may change it.
    batch_size
        Records of a learning batch, at least 16.
    alarm_rate
        Largest p-value of an anomaly, in (0, 1). Among the first 4,096 records, at most 2 plus
        1536 times this many within 512 records are anomalies.
    learning
        If False, the learner scores as it is and learns nothing.
    transforms
        By column number, ``log``, ``log1p`` or ``asinh``: the learner is given the transformed
        values; scores stay in the fields' own units.
    max_entities
        Most entities at a time, if each record belongs to an entity: a device, a customer. The
        learner is given rows in units of their entity, so what counts is what is unusual for it;
        log-likelihoods stay in the fields' own units. None is no entities.
    incidents
        When incidents open and close. None follows no incidents.

    Examples
    --------
    >>> import numpy as np
    >>> from faust_oslrau.learner import OSLRAU
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> X[800] = [9.0, 0.0, 0.0]
    >>> block = StreamScorer(OSLRAU(), alarm_rate=0.01).process(X)
    >>> np.isnan(block.log_likelihood[:16]).all(), np.unique(block.n_learned)
    (np.True_, array([  0,  16,  48, 112, 240, 496, 752]))
    >>> block.is_anomaly[800]
    np.True_
    >>> at = np.flatnonzero(np.flatnonzero(block.is_anomaly) == 800)[0]  # its row of the blame
    >>> block.blame.order[at, : block.blame.n_blamed[at]]  # the fields to blame
    array([0])

    The same stream in pieces gives the same bits.

    >>> scorer = StreamScorer(OSLRAU(), alarm_rate=0.01)
    >>> pieces = [scorer.process(X[start : start + 7]).p_value for start in range(0, 1000, 7)]
    >>> np.array_equal(np.concatenate(pieces), block.p_value, equal_nan=True)
    True
    """

    def __init__(
        self,
        learner: Learner,
        batch_size: int = 256,
        alarm_rate: float = 0.001,
        *,
        learning: bool = True,
        transforms: Mapping[int, str] | None = None,
        max_entities: int | None = None,
        incidents: IncidentParameters | None = None,
    ) -> None:
        if batch_size < FIRST_BATCH:
            raise InvalidParameterError(
                f"batch_size = {batch_size}: expected at least {FIRST_BATCH}"
            )
        if not 0 < alarm_rate < 1:
            raise InvalidParameterError(f"alarm_rate = {alarm_rate}: expected in (0, 1)")
        learner.check_parameters()
        self.learner = learner
        self.batch_size = batch_size
        self.alarm_rate = alarm_rate
        self.learning = learning
        self.n_records = 0
        self._n_fields: int | None = None
        self._transforms = Transforms(transforms or {})
        self._entities = None if max_entities is None else Entities(max_entities)
        self._ranking = Ranking()
        self._calibration = Calibration()
        self._densities = Calibration()
        self._proximities = RecentScores()
        self._guard = Guard()
        self._drift = Drift()
        self._first_alarms = FirstAlarms()
        self._missing = Missing()
        self._neighbours = Neighbours()
        self._tail_mass = TailMass()
        self._incidents: Incidents | None = None
        self.incidents = incidents
        self._ranges = Ranges()
        self._pending: list[FloatArray] = []
        self._pending_measures: list[FloatArray] = []
        self._until_boundary = FIRST_BATCH
        self._next_batch = FIRST_BATCH

    @property
    def n_fields(self) -> int | None:
        """Columns of the stream, None before the first rows."""
        return self._n_fields

    @property
    def parameters(self) -> dict[str, Any]:
        """What scores depend on beside the learner and the stream."""
        return {
            "batch_size": self.batch_size,
            "alarm_rate": self.alarm_rate,
            "transforms": self._transforms.names,
            "max_entities": None if self._entities is None else self._entities.roster.limit,
        }

    @property
    def n_entities(self) -> int:
        """The number of entities whose usual values are known."""
        return 0 if self._entities is None else len(self._entities.roster)

    @property
    def n_evicted(self) -> int:
        """The number of entities that gave way to others since this object exists."""
        return 0 if self._entities is None else self._entities.roster.evicted

    @property
    def incidents(self) -> IncidentParameters | None:
        """When incidents open and close; a new value applies from the next row on."""
        return None if self._incidents is None else self._incidents.parameters

    @incidents.setter
    def incidents(self, parameters: IncidentParameters | None) -> None:
        if parameters is None:
            self._incidents = None
        elif self._incidents is None:
            self._incidents = Incidents(parameters)
        else:
            self._incidents.parameters = parameters

    @property
    def open_incident(self) -> Incident | None:
        """The incident that is open after the last row."""
        return None if self._incidents is None else self._incidents.open

    def process(
        self,
        X: ArrayLike,
        entity: Sequence[Key | str] | None = None,
        places: ArrayLike | None = None,
    ) -> ScoredBlock:
        """Score the stream's next rows (m, d), NaN = missing, and learn at each boundary.

        With ``max_entities``, ``entity`` has the entity of each row: bytes, text as UTF-8, or None
        for the entity of all rows without one. ``places`` (m, 2) are the rows' offsets and
        timestamps, by which incidents name them; by default their numbers in the stream, and -1.

        Raises
        ------
        InvalidInputError
            ``X`` is not a matrix of finite or missing numbers with as many columns as before,
            or holds a value that its column's transform does not take; or ``entity`` does not have
            one entity for each row.
        """
        given = np.array(X, dtype=np.float64, order="C")
        self._check(given)
        keys = self._keys(entity, len(given))
        rows = self._transforms.apply(given)
        self._n_fields = given.shape[1]
        block = BlockMaker(given, self._numbered(places, len(rows)))
        start = 0
        while start < len(rows):
            stop = min(start + self._until_boundary, len(rows))
            self._advance(rows[start:stop], keys[start:stop], block, slice(start, stop))
            start = stop
        return block.finish(self._drift.statistic)

    def to_bytes(self) -> bytes:
        """Write the whole state, with pending records, so that it continues to the same bits."""
        reference, numbers = self._drift.state
        values = {
            "format": STATE_FORMAT,
            "batch_size": self.batch_size,
            "alarm_rate": self.alarm_rate,
            "learning": self.learning,
            "transforms": list(self._transforms.names.items()),
            "n_records": self.n_records,
            "next_batch": self._next_batch,
            "far_accepted": self._guard.accepted,
            "boundary": self._missing.boundary,
            "losses_left": self._missing.left,
            "ranked": self._ranking.n,
            "neighbours_taken": self._neighbours.n,
        }
        arrays: dict[str, NDArray[Any]] = {
            "learner": np.frombuffer(self.learner.to_bytes(), np.uint8),
            "level": self._ranking.level,
            "spread": self._ranking.spread,
            "recent": self._calibration.recent,
            "recent_densities": self._densities.recent,
            "drift_reference": reference,
            "drift_numbers": numbers,
            "held": self._guard.held,
            "held_positions": self._guard.positions,
            "far_positions": self._guard.far,
            "complete": self._missing.rows,
            "masks": self._missing.masks,
            "losses": self._missing.losses,
            "born": self._missing.born,
            "worth": self._missing.worth,
            "neighbours": self._neighbours.rows,
            "variance": self._neighbours.variance,
            "mass_location": self._tail_mass.location,
            "mass_scale": self._tail_mass.scale,
            "mass_weight": self._tail_mass.weight,
            "mass_mean": self._tail_mass.mean,
            "mass_covariance": self._tail_mass.covariance,
            "lowest": self._ranges.lowest,
            "highest": self._ranges.highest,
            "pending": _joined(self._pending),
            "pending_measures": _joined(self._pending_measures),
        }
        if len(self._proximities.recent) > 0:
            arrays["recent_proximities"] = self._proximities.recent
        if self._entities is not None:
            values["max_entities"] = self._entities.roster.limit
            arrays |= self._entities.state()
        if self._first_alarms.numbers:
            values["first_alarms"] = self._first_alarms.numbers
        if self._incidents is not None:
            values["incidents"], more = self._incidents.state()
            arrays |= more
        return pack("StreamScorer", values, arrays)

    @classmethod
    def from_bytes(cls, data: bytes, learner: type[Learner] = OSLRAU) -> Self:
        """Restore what ``to_bytes`` wrote, with a learner of type ``learner``.

        Raises
        ------
        StateError
            The bytes are damaged, of another format version, or not those of a scorer.
        """
        values, arrays = unpack(data, "StreamScorer")
        found = values.get("format", 1)
        if found != STATE_FORMAT:
            raise StateVersionError(
                f"state: expected format {STATE_FORMAT} of a scorer, got {found!r}"
            )
        try:
            model = learner.from_bytes(arrays["learner"].tobytes())
            scorer = cls(
                model,
                values["batch_size"],
                values["alarm_rate"],
                learning=values["learning"],
                transforms=dict(values["transforms"]),
                max_entities=values.get("max_entities"),
            )
            scorer._restore(values, arrays)
        except StateError:
            raise
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            raise StateError(f"state: expected the state of a scorer, {error}") from error
        return scorer

    def _restore(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        pending, measures = arrays["pending"], arrays["pending_measures"]
        if pending.ndim != 2 or measures.ndim != 2 or len(pending) != len(measures):
            raise StateError("state: expected the measures of each pending record")
        if np.isinf(pending).any() or np.isposinf(measures).any():
            raise StateError("state: expected finite pending records")
        self.n_records = record_count(values["n_records"])
        self._next_batch = record_count(values["next_batch"])
        self._until_boundary = self._next_batch - len(pending)
        if self.n_records < len(pending) or not 0 < self._until_boundary <= self.batch_size:
            raise StateError("state: expected fewer pending records than a learning batch")
        if len(pending) > 0:
            self._pending, self._pending_measures = [pending], [measures]
        self._ranking.restore(arrays["level"], arrays["spread"], record_count(values["ranked"]))
        if arrays["recent"].shape != arrays["recent_densities"].shape:
            raise StateError("state: expected a log-density for each recent score")
        self._calibration.update(arrays["recent"])
        self._densities.update(arrays["recent_densities"])
        proximities = arrays.get("recent_proximities", np.empty(0))
        if len(proximities) not in (0, len(arrays["recent"])):
            raise StateError("state: expected a proximity for each recent score")
        self._proximities.update(proximities)
        self._guard.restore(
            arrays["held"], arrays["held_positions"], arrays["far_positions"],
            bool(values["far_accepted"]),
        )  # fmt: skip
        self._drift.restore(arrays["drift_reference"], arrays["drift_numbers"])
        self._missing.restore(
            arrays["complete"], arrays["masks"], arrays["losses"], arrays["born"],
            arrays["worth"], record_count(values["losses_left"]), record_count(values["boundary"]),
        )  # fmt: skip
        self._neighbours.restore(
            arrays["neighbours"], arrays["variance"], record_count(values["neighbours_taken"])
        )
        self._tail_mass.restore(
            arrays["mass_location"], arrays["mass_scale"], arrays["mass_weight"],
            arrays["mass_mean"], arrays["mass_covariance"], self._neighbours.n,
        )  # fmt: skip
        records = (
            pending,
            self._guard.held,
            self._missing.rows,
            self._neighbours.rows,
            self._tail_mass.mean,
        )
        widths = {rows.shape[1] for rows in records if len(rows) > 0}
        if len(widths) > 1:
            raise StateError("state: expected all records to have as many fields")
        self._n_fields = widths.pop() if widths else None
        unknown = np.empty(0)  # states of earlier versions have no ranges
        self._ranges.restore(
            arrays.get("lowest", unknown), arrays.get("highest", unknown), self._n_fields
        )
        if self._entities is not None:
            scored = len(pending) if self.learner.n_records_ > 0 else 0
            self._entities.restore(arrays, self._n_fields, len(pending), scored)
        self._first_alarms.restore(values.get("first_alarms", []))
        if "incidents" in values:
            self._incidents = Incidents.restored(values["incidents"], arrays, self._n_fields or 0)
        self._check_measures(arrays["level"], arrays["losses"], arrays["worth"])

    def _check_measures(self, *taken_up: NDArray[Any]) -> None:
        """Refuse a state whose arrays do not have as many measures as a record."""
        if self._n_fields is None or self.learner.n_records_ == 0:
            return
        k = self._measures(np.full((1, self._n_fields), np.nan)).shape[1]
        if any(array.size > 0 and array.shape[-1] != k for array in taken_up):
            raise StateError(f"state: expected {k} measures of each record")

    def _check(self, rows: FloatArray) -> None:
        """Refuse rows that could not be learned later, before any of them is scored."""
        if rows.ndim != 2:
            raise InvalidInputError(f"X: expected a matrix (m, d), got shape {rows.shape}")
        if self._n_fields not in (None, rows.shape[1]):
            raise InvalidInputError(f"X: expected {self._n_fields} columns, got {rows.shape[1]}")
        if np.isinf(rows).any():
            raise InvalidInputError("X: expected finite or missing (NaN) values, got infinity")

    def _keys(self, entity: Sequence[Key | str] | None, m: int) -> list[Key]:
        if self._entities is not None:
            return as_keys(entity, m)
        if entity is not None:
            raise InvalidInputError("entity: expected none without max_entities")
        return []

    def _numbered(self, places: ArrayLike | None, m: int) -> IntArray:
        """Return number, offset and timestamp (m, 3) of the next rows."""
        numbers = self.n_records + np.arange(m)
        if places is None:
            return np.column_stack([numbers, numbers, np.full(m, -1)])
        found = np.asarray(places, np.int64)
        if found.shape != (m, 2):
            raise InvalidInputError(f"places: expected a matrix ({m}, 2), got shape {found.shape}")
        return np.column_stack([numbers, found])

    def _advance(self, rows: FloatArray, keys: Sequence[Key], block: BlockMaker, at: slice) -> None:
        """Score the next rows, which reach at most one boundary, and learn there."""
        own = None if self._entities is None else self._entities.take(rows, keys)
        measures, evaluation = self._score(rows, own, block, at)
        self._collect(rows if own is None else own.rows, measures)
        if self._until_boundary == 0:
            self._learn(block, at.stop - 1, evaluation)

    @property
    def _has_model(self) -> bool:
        has_units = self._entities is None or self._entities.has_begun
        return has_units and self.learner.n_records_ > 0

    def _score(
        self, rows: FloatArray, own: OwnRows | None, block: BlockMaker, at: slice
    ) -> tuple[FloatArray, Measured | None]:
        """Fill in the scores of rows; return their completed measures, and their evaluation."""
        began = perf_counter()
        measures, evaluation = np.full((len(rows), 1), np.nan), None
        block.n_learned[at] = self.learner.n_records_
        block.warming_up[at] = self.n_records + np.arange(len(rows)) < WARM_UP
        if self._has_model:
            log_jacobian = self._log_jacobian(rows, own)
            if own is not None:
                rows = own.rows
            evaluation = self.learner.evaluate(rows)
            found: Measured = evaluation
            if self._entities is not None:
                found = self._entities.mix(rows, evaluation)
            block.log_likelihood[at] = found.log_density + log_jacobian
            measures = self._all_measures(rows, found, log_jacobian)
            measures = self._missing.complete(rows, measures, self._measures)
            comparable = self._ranking.stretched(measures, stretch(rows))
            score = self._ranking.score(comparable)
            if self._entities is not None:
                score = self._entities.relate(score)
            p_value = self._calibration.p_value(score)
            block.p_value[at] = p_value
            block.is_anomaly[at] = self._first_alarms.choose(
                p_value <= self.alarm_rate, self.n_records, self.alarm_rate
            )
            self._explain(rows, own, comparable[:, 0], block, at)
        block.score_seconds += perf_counter() - began
        return measures, evaluation

    def _measures(self, rows: FloatArray) -> FloatArray:
        log_jacobian = self._log_jacobian(rows, None) if self._entities is None else 0.0
        return self._all_measures(rows, self.learner.evaluate(rows), log_jacobian)

    def _all_measures(
        self, rows: FloatArray, evaluation: Measured, log_jacobian: FloatArray | float
    ) -> FloatArray:
        """Return the learner's measures of transformed rows, then nearness and tail mass.

        Log-densities are in the fields' own units; with entities, in those of the entity, so that
        records of noisy and of quiet entities compare.
        """
        nearness, mass = -self._neighbours.distance(rows), self._tail_mass.log_mass(rows)
        measures = np.column_stack([evaluation.measures, nearness, mass])
        if self._entities is None:
            measures[:, 0] += log_jacobian
        return measures

    def _log_jacobian(self, rows: FloatArray, own: OwnRows | None) -> FloatArray | float:
        """Return what to add (m,) to log-densities of transformed rows for the fields' units."""
        log_jacobian: FloatArray | float = 0.0
        if own is not None:
            log_jacobian = own.log_jacobian
        if self._transforms.names:
            log_jacobian = log_jacobian + self._transforms.log_jacobian(rows)
        return log_jacobian

    def _explain(
        self,
        rows: FloatArray,
        own: OwnRows | None,
        log_density: FloatArray,
        block: BlockMaker,
        at: slice,
    ) -> None:
        """Blame fields of anomalous rows and of those with evidence, and follow incidents."""
        is_anomaly, steps = block.is_anomaly[at], []
        if self._incidents is not None:
            steps = self._incidents.trace(block.p_value[at], is_anomaly, block.places[at])
        evident = has_evidence(steps, len(rows))
        either = is_anomaly | evident
        if not (either.any() or steps):
            return
        density: Conditionals = self.learner.established
        if self._entities is not None:
            density = self._entities.conditionals(self.learner.established, either)
        blame = self._blame(density, rows[either], log_density[either])
        if self._entities is not None and own is not None:
            blame = self._entities.undo_blame(blame, own.units[either])
        blame = self._transforms.undo_blame(blame)._replace(value=block.given[at][either])
        block.blame.append(blame.of(is_anomaly[either]))
        if self._incidents is not None:
            events = self._incidents.events(steps, blame.of(evident[either]))
            block.incidents += [event._replace(row=at.start + event.row) for event in events]

    def _blame(
        self, density: Conditionals, rows: FloatArray, log_density: FloatArray
    ) -> Blame:
        stored = self._neighbours.rows
        sample = stored[:: max(1, len(stored) // 128)]  # enough for means and spreads
        alone = excess_alone(rows, sample)
        found = blame(density, rows, log_density, alone, self._is_usual)
        return found._replace(extrapolated=self._ranges.is_outside(found.expected))

    def _is_usual(self, log_density: FloatArray) -> NDArray[np.bool_]:
        return self._densities.p_value(log_density) > self.alarm_rate

    def _collect(self, rows: FloatArray, measures: FloatArray) -> None:
        """Save measured rows until the next boundary."""
        self._pending.append(rows)
        self._pending_measures.append(measures)
        self.n_records += len(rows)
        self._until_boundary -= len(rows)

    def _learn(self, block: BlockMaker, position: int, latest: Measured | None) -> None:
        """Learn the rows since the last boundary, and calibrate with their measures.

        ``latest`` is the evaluation of the last of these rows; under full load, of all.
        """
        began = perf_counter()
        rows, measures = np.concatenate(self._pending), np.concatenate(self._pending_measures)
        if self._entities is not None and not self._entities.has_begun:
            rows = self._entities.begin(rows)
        factor = stretch(rows)
        comparable = self._ranking.stretched(measures, factor)
        densities, proximities = comparable[:, 0], self._proximity(rows)
        change = self._drift.update(densities) if self.n_records > WARM_UP else None
        if change:
            block.changes.append((position, change))
        known, first = ~np.isnan(densities), self._ranking.n == 0
        if first:
            self._update_ranking(measures, factor, known)
            comparable = self._ranking.stretched(measures, factor)
        scores = self._ranking.score(comparable)
        if self._entities is not None and not first:
            scores = self._entities.given
        usual = scores >= self._calibration.lowest_usual
        self._missing.update(rows.compress(usual, axis=0), self.n_records)
        if self.learning:
            known &= self._learn_usual(
                rows, densities if proximities is None else proximities, block, latest
            )
        else:
            self._neighbours.update(rows)
            self._ranges.update(rows.compress(usual, axis=0))
        self._tail_mass.update(self._neighbours.rows, self._neighbours.n)
        self._calibrate(
            scores[known], densities[known], None if proximities is None else proximities[known]
        )
        if not first:
            self._update_ranking(measures, factor, known)
        if self._entities is not None:
            self._entities.update(self.n_records, learning=self.learning)
        self._pending, self._pending_measures = [], []
        self._next_batch = min(2 * self._next_batch, self.batch_size)
        self._until_boundary = self._next_batch
        block.learn_seconds += perf_counter() - began

    def _update_ranking(
        self, measures: FloatArray, factor: FloatArray | None, usual: NDArray[np.bool_]
    ) -> None:
        if not usual.all():
            measures, factor = measures[usual], None if factor is None else factor[usual]
        self._ranking.update(measures, factor)

    def _proximity(self, rows: FloatArray) -> FloatArray | None:
        """Return what the guard compares (m,) where it is not the log-density."""
        return self.learner.proximity(rows) if self.learner.n_records_ > 0 else None

    @property
    def _guarded(self) -> RecentScores:
        """Recent values of what the guard compares."""
        return self._proximities if len(self._proximities.recent) > 0 else self._densities

    def _calibrate(
        self, scores: FloatArray, densities: FloatArray, proximities: FloatArray | None
    ) -> None:
        """Add scores to the recent ones; while these are few, remove those below the fence."""
        young = len(self._densities.recent) < FEWEST_SCORES
        self._calibration.update(scores)
        self._densities.update(densities)
        if proximities is not None:
            self._proximities.update(proximities)
        if young and self.learning:
            usual = self._guarded.recent >= fence(self._guarded.ascending)
            self._calibration.select(usual)
            self._densities.select(usual)
            if len(self._proximities.recent) > 0:
                self._proximities.select(usual)

    def _learn_usual(
        self,
        rows: FloatArray,
        proximity: FloatArray,
        block: BlockMaker,
        latest: Measured | None,
    ) -> NDArray[np.bool_]:
        """Learn the rows that the guard lets pass; return whose scores count as usual (m,)."""
        ascending = self._guarded.ascending
        # Only so many far scores may count as usual that the next far one is still an anomaly.
        room = int(self.alarm_rate * (len(ascending) + 1)) - 1
        parted = self._guard.part(rows, proximity, ascending, self.n_records, room)
        before = self.learner.n_records_
        usual = rows.compress(parted.usual, axis=0)
        if self._entities is not None:
            self._entities.learn(rows, parted.usual)
        self.learner.partial_fit(usual, evaluation=latest)
        self._neighbours.update(usual)
        self._ranges.update(usual)
        for start in range(0, len(parted.regime), self.batch_size):
            late = parted.regime[start : start + self.batch_size]
            self.learner.partial_fit(late)
            self._neighbours.update(late)
            self._ranges.update(late)
        block.learned += self.learner.n_records_ - before
        block.held_back += int(np.count_nonzero(~parted.usual))
        return parted.counted


def _joined(parts: list[FloatArray]) -> FloatArray:
    return np.concatenate(parts) if parts else np.empty((0, 0))
