"""The state of a scorer as bytes, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.learner.entities.layer import Entities
from faust_oslrau.learner.entities.watch import Watch
from faust_oslrau.learner.errors import StateError, StateVersionError
from faust_oslrau.learner.extent import Extent
from faust_oslrau.learner.history.layer import History
from faust_oslrau.learner.history.stretches import Stretches
from faust_oslrau.learner.protocol import Learner
from faust_oslrau.learner.scoring.guard import REGIME, Guard
from faust_oslrau.learner.scoring.incidents import Incidents
from faust_oslrau.learner.scoring.transforms import Transforms
from faust_oslrau.learner.seasons.layer import Seasons
from faust_oslrau.learner.silence.layer import Silences
from faust_oslrau.learner.state import Parts, parts, record_count, unpack

from .measures import measure
from .state import ScorerState

FloatArray = NDArray[np.float64]
Values = dict[str, Any]
Arrays = dict[str, NDArray[Any]]

STATE_FORMAT = 7
"""Format of the scorer's own state. A state of another format is refused: the log must be learned
again."""


def to_parts(state: ScorerState) -> Parts:
    """Return the bytes of the whole state in parts, which are valid until it changes."""
    reference, numbers = state.drift.state
    values = {
        "format": STATE_FORMAT,
        "batch_size": state.batch_size,
        "alarm_rate": state.alarm_rate,
        "learning": state.learning,
        "transforms": list(state.transforms.names.items()),
        "n_records": state.n_records,
        "next_batch": state.next_batch,
        "far_accepted": state.guard.accepted,
        "left_out": state.bursts.left_out,
        "boundary": state.missing.boundary,
        "losses_left": state.missing.left,
        "ranked": state.ranking.n,
        "neighbours_taken": state.neighbours.n,
    }
    arrays: Arrays = {
        "learner": np.frombuffer(state.learner.to_bytes(), np.uint8),
        "level": state.ranking.level,
        "spread": state.ranking.spread,
        "recent": state.recent.scores.recent,
        "recent_densities": state.densities.recent,
        "drift_reference": reference,
        "drift_numbers": numbers,
        "held": state.guard.held,
        "held_positions": state.guard.positions,
        "far_positions": state.guard.far,
        "complete": state.missing.rows,
        "masks": state.missing.masks,
        "losses": state.missing.losses,
        "born": state.missing.born,
        "worth": state.missing.worth,
        "neighbours": state.neighbours.rows,
        "variance": state.neighbours.variance,
        "mass_location": state.tail_mass.location,
        "mass_scale": state.tail_mass.scale,
        "mass_weight": state.tail_mass.weight,
        "mass_mean": state.tail_mass.mean,
        "mass_covariance": state.tail_mass.covariance,
        "lowest": state.ranges.lowest,
        "highest": state.ranges.highest,
        "pending": _joined(state.pending),
        "pending_measures": _joined(state.pending_measures),
    }
    if len(state.recent.measures) > 0:
        arrays["recent_measures"] = state.recent.measures
    if len(state.proximities.recent) > 0:
        arrays["recent_proximities"] = state.proximities.recent
    if state.entities is not None:
        values["max_entities"] = state.entities.roster.limit
        values["max_former_entities"] = state.entities.former.limit
        if state.entities.watch is not None:
            values["entity_events"] = state.entities.watch.events
        arrays |= state.entities.state()
    if state.history is not None:
        values["history"] = state.history.names
        slots = 1 if state.entities is None else len(state.entities.roster)
        arrays |= state.history.state(slots)
    if state.stretches is not None:
        values["stretches"] = state.stretches.lengths
        arrays |= state.stretches.state(1 if state.entities is None else len(state.entities.roster))
    if state.seasons is not None:
        values["seasons"] = state.seasons.zone
        arrays |= state.seasons.state()
    if state.guard.adapt_after != REGIME:
        values["adapt_after"] = state.guard.adapt_after
    if state.silences is not None:
        arrays |= state.silences.state()
    if state.first_alarms.numbers:
        values["first_alarms"] = state.first_alarms.numbers
    if state.incidents is not None:
        values["incidents"], more = state.incidents.state()
        arrays |= more
    return parts("StreamScorer", values, arrays)


def from_bytes(data: bytes | Extent, learner: type[Learner]) -> ScorerState:
    """Read what ``to_bytes`` wrote, with a learner of type ``learner``.

    Raises
    ------
    StateError
        The bytes are damaged, of another format version, or not those of a scorer.
    """
    values, arrays = unpack(data, "StreamScorer")
    found = values.get("format", 1)
    if found != STATE_FORMAT:
        raise StateVersionError(f"state: expected format {STATE_FORMAT} of a scorer, got {found!r}")
    try:
        state = _begun(values, learner.from_bytes(arrays["learner"].tobytes()))
        _restore_rows(state, values, arrays)
        _restore_scores(state, values, arrays)
        _restore_layers(state, values, arrays)
        _check_measures(state, arrays["level"], arrays["losses"], arrays["worth"])
        state.measure_anew()
        _follow_pending(state)
    except StateError:
        raise
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise StateError(f"state: expected the state of a scorer, {error}") from error
    return state


def _begun(values: Values, learner: Learner) -> ScorerState:
    limit, spans, lengths = map(values.get, ("max_entities", "history", "stretches"))
    return ScorerState(
        learner,
        values["batch_size"],
        values["alarm_rate"],
        values["learning"],
        Transforms(dict(values["transforms"])),
        None if limit is None else Entities(limit, values["max_former_entities"]),
        history=None if spans is None else History(spans, centred=limit is not None),
        stretches=None if lengths is None else Stretches(lengths),
        seasons=None if values.get("seasons") is None else Seasons(values["seasons"]),
        guard=Guard(values.get("adapt_after", REGIME)),
    )


def _restore_rows(state: ScorerState, values: Values, arrays: Arrays) -> None:
    """Restore the rows that are kept, all of them as wide as the stream."""
    pending, measures = arrays["pending"], arrays["pending_measures"]
    if pending.ndim != 2 or measures.ndim != 2 or len(pending) != len(measures):
        raise StateError("state: expected the measures of each pending record")
    if np.isinf(pending).any() or np.isposinf(measures).any():
        raise StateError("state: expected finite pending records")
    state.n_records = record_count(values["n_records"])
    state.next_batch = record_count(values["next_batch"])
    state.until_boundary = state.next_batch - len(pending)
    if state.n_records < len(pending) or not 0 < state.until_boundary <= state.batch_size:
        raise StateError("state: expected fewer pending records than a learning batch")
    if len(pending) > 0:
        state.pending, state.pending_measures = [pending], [measures]
    state.guard.restore(
        arrays["held"], arrays["held_positions"], arrays["far_positions"],
        bool(values["far_accepted"]),
    )  # fmt: skip
    state.missing.restore(
        arrays["complete"], arrays["masks"], arrays["losses"], arrays["born"],
        arrays["worth"], record_count(values["losses_left"]), record_count(values["boundary"]),
    )  # fmt: skip
    state.neighbours.restore(
        arrays["neighbours"], arrays["variance"], record_count(values["neighbours_taken"])
    )
    state.tail_mass.restore(
        arrays["mass_location"], arrays["mass_scale"], arrays["mass_weight"],
        arrays["mass_mean"], arrays["mass_covariance"], state.neighbours.n,
    )  # fmt: skip
    _restore_widths(state, arrays)


def _restore_widths(state: ScorerState, arrays: Arrays) -> None:
    """Restore the number of fields, and the ranges of the columns that the learner is given."""
    given = [*state.pending, state.guard.held, state.missing.rows]
    columns, fields = _width(given), _width([state.neighbours.rows, state.tail_mass.mean])
    is_widened = state.entities is None or arrays["entity_reference"].size > 0
    history = state.history if is_widened else None
    if columns is None and fields is not None:
        columns = fields if history is None else history.n_columns(fields)
    if columns is not None:
        state.n_fields = columns if history is None else history.n_fields(columns)
    if fields not in (None, state.n_fields):
        raise StateError("state: expected all records to have as many fields")
    unknown = np.empty(0)  # states of earlier versions have no ranges
    state.ranges.restore(arrays.get("lowest", unknown), arrays.get("highest", unknown), columns)


def _width(kept: list[FloatArray]) -> int | None:
    """Return the columns of all arrays with rows, None if there are no rows."""
    widths = {rows.shape[1] for rows in kept if len(rows) > 0}
    if len(widths) > 1:
        raise StateError("state: expected all records to have as many fields")
    return widths.pop() if widths else None


def _restore_scores(state: ScorerState, values: Values, arrays: Arrays) -> None:
    state.ranking.restore(arrays["level"], arrays["spread"], record_count(values["ranked"]))
    if arrays["recent"].shape != arrays["recent_densities"].shape:
        raise StateError("state: expected a log-density for each recent score")
    state.recent.restore(arrays["recent"], arrays.get("recent_measures"), state.ranking)
    state.bursts.restore(values["left_out"])
    state.densities.restore(arrays["recent_densities"])
    proximities = arrays.get("recent_proximities", np.empty(0))
    if len(proximities) not in (0, len(arrays["recent"])):
        raise StateError("state: expected a proximity for each recent score")
    state.proximities.restore(proximities)
    state.drift.restore(arrays["drift_reference"], arrays["drift_numbers"])


def _restore_layers(state: ScorerState, values: Values, arrays: Arrays) -> None:
    """Restore what states of earlier versions, or of other settings, do not have."""
    if state.entities is not None:
        n_pending = sum(map(len, state.pending))
        scored = n_pending if state.learner.n_records_ > 0 else 0
        if "entity_events" in values:
            state.entities.watch = Watch(values["entity_events"], state.alarm_rate)
        state.entities.restore(arrays, state.n_fields, n_pending, scored)
    if state.history is not None:
        state.history.restore(arrays, state.n_fields)
    if state.seasons is not None:
        n_pending = sum(map(len, state.pending)) if state.has_units else 0
        state.seasons.restore(arrays, state.n_fields, n_pending)
    if state.stretches is not None:
        state.stretches.restore(arrays, sum(map(len, state.pending)))
    if "silence_clock" in arrays:
        state.silences = Silences()
        held = 0 if state.entities is None else len(state.entities.roster)
        state.silences.restore(arrays, held)
    state.first_alarms.restore(values.get("first_alarms", []))
    if "incidents" in values:
        state.incidents = Incidents.restored(
            values["incidents"], arrays, state.n_fields or 0, state.ranking
        )


def _check_measures(state: ScorerState, *taken_up: NDArray[Any]) -> None:
    """Refuse a state whose arrays do not have as many measures as a record."""
    if state.n_columns is None or state.learner.n_records_ == 0:
        return
    k = measure(state, np.full((1, state.n_columns), np.nan)).shape[1]
    if not state.has_nearness and taken_up[0].shape == (k + 1,):
        raise StateVersionError("state: expected records ranked without nearness, got one with it")
    if any(array.size > 0 and array.shape[-1] != k for array in taken_up):
        raise StateError(f"state: expected {k} measures of each record")


def _follow_pending(state: ScorerState) -> None:
    """Bring the shares of the learner's networks to the last pending row."""
    if state.has_model and len(state.learner.shares) > 1:
        for rows in state.pending:
            state.shares.take(state.learner, state.learner.evaluate(rows))


def _joined(parts: list[FloatArray]) -> FloatArray:
    return np.concatenate(parts) if parts else np.empty((0, 0))
