"""The state of a scorer as bytes, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from faust_oslrau.learner.arrays import Arrays, FloatArray
from faust_oslrau.learner.categories.rows import check_given
from faust_oslrau.learner.errors import StateError, StateVersionError
from faust_oslrau.learner.layered import Layer
from faust_oslrau.learner.oslrau import OSLRAU
from faust_oslrau.learner.scoring.incidents import Incidents
from faust_oslrau.learner.state import Extent, Parts, parts, record_count, unpack
from faust_oslrau.learner.state_schema import Entry, check_types, expect, read

from .parameters import ScorerParameters
from .state import Pending, ScorerState

Values = dict[str, Any]

S = TypeVar("S", bound=ScorerParameters)

STATE_FORMAT = 13
"""Format of the scorer's own state. A state of another format is refused: the log must be learned
again."""

_SCORES = Entry(("n",), -np.inf, np.inf, nan=True)
_MOST_MEASURES = 16

_PENDING = {
    "rows": Entry(("n", "d"), nan=True),
    "measures": Entry(("n", "k"), -np.inf, nan=True),
    "scores": _SCORES,
    "marks": _SCORES,
}

_NONE = type(None)
_GIVEN = {
    "batch_size": (int,),
    "alarm_rate": (float, int),
    "learning": (bool,),
    "transforms": (list,),
    "n_categories": (int,),
    "adapt_after": (int,),
    "max_entities": (int, _NONE),
    "max_former_entities": (int, _NONE),
    "history": (list, _NONE),
    "seasons": (str, _NONE),
    "entity_events": (list, _NONE),
    "rates": (list, _NONE),
    "directions": (list, _NONE),
    "least": (list, _NONE),
}
"""What a scorer is made with, by the types that JSON has for it."""

_TYPES = _GIVEN | {"only_categories": (bool, _NONE), "incidents": (dict, _NONE)}

_OF_COLUMNS = ("transforms", "directions", "least")


def _given(scorer: ScorerParameters) -> Values:
    """Return what a scorer was made with, as JSON has it; what is off is left out."""
    state, found = scorer._state, scorer.parameters
    found |= {"alarm_rate": state.alarm_rate, "learning": state.learning}
    found |= {name: [[*pair] for pair in found[name].items()] for name in _OF_COLUMNS}
    if state.history is not None:
        found["history"] = list(state.history.names)
    if not state.relevance.is_on:
        found["directions"] = found["least"] = None
    if state.rates is not None:
        by = [] if state.rates.by is None else [state.rates.by]
        found["rates"] = [state.rates.seconds, state.rates.zone, *by]
    found["entity_events"] = list(scorer.entity_events) or None
    return {name: value for name, value in found.items() if value is not None}


def _parameters(values: Values) -> Values:
    """Return the parameters of a scorer that was made with such ``values``."""
    found = {name: values[name] for name in _GIVEN if values.get(name) is not None}
    found |= {name: dict(found[name]) for name in _OF_COLUMNS if name in found}
    if "rates" in found:
        found["rates"], _, *by = found["rates"]
        found["rates_by"] = by[0] if by else None
    return found


def to_parts(scorer: ScorerParameters) -> Parts:
    """Return the bytes of the whole state in parts, which are valid until it changes."""
    state = scorer._state
    values = {
        "format": STATE_FORMAT,
        **_given(scorer),
        "n_records": state.n_records,
        "next_batch": state.next_batch,
        "ranked": state.ranking.n,
        "neighbours_taken": state.neighbours.n,
    }
    arrays: Arrays = {
        "learner": np.frombuffer(state.learner.to_bytes(), np.uint8),
        **state.ranking.state(),
        **state.clock.state(),
        **state.drift.state(),
        **state.neighbours.state(),
        **state.tail_mass.state(),
        **state.ranges.state(),
        **state.late.state(),
        **(state.late_categories.state() if state.categories is not None else {}),
        **state.reference.state(),
        **state.repeats.state(_slots(state)),
        **_pending(state),
    }
    layers: list[Layer | None] = [
        state.categories, state.entities, state.seasons, state.relevance, state.silences,
        state.rates,
    ]  # fmt: skip
    for layer in layers:
        arrays |= {} if layer is None else layer.state()
    if state.categories is not None and state.categories.alone:
        values["only_categories"] = True
    if state.history is not None:
        arrays |= state.history.state(_slots(state))
    if state.incidents is not None:
        values["incidents"], more = state.incidents.state(_slots(state))
        arrays |= more
    return parts("StreamScorer", values, arrays)


def from_bytes(new: Callable[..., S], data: bytes | Extent, learner: type[OSLRAU]) -> S:
    """Return the scorer that ``to_parts`` wrote; ``new`` makes it of a learner and parameters.

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
        check_types(values, _TYPES)
        scorer = new(learner.from_bytes(arrays["learner"].tobytes()), **_parameters(values))
        given = {name: values[name] for name in _GIVEN if values.get(name) is not None}
        expect(_given(scorer) == given, "parameters that go together")
        state, scorer.silences = scorer._state, "silence_times" in arrays
        _restore_rows(state, values, arrays)
        state.ranking.restore(arrays, record_count(values["ranked"]))
        state.clock.restore(arrays)
        state.drift.restore(arrays)
        _restore_layers(state, values, arrays)
        _check_measures(state)
    except StateError:
        raise
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise StateError(f"state: expected the state of a scorer, {error}") from error
    return scorer


def _restore_rows(state: ScorerState, values: Values, arrays: Arrays) -> None:
    """Restore the rows that are kept, all of them as wide as the stream."""
    pending = Pending(*read(arrays, _PENDING, "pending_", k=range(1, _MOST_MEASURES)))
    state.n_records = record_count(values["n_records"])
    state.next_batch = record_count(values["next_batch"])
    n_pending = len(pending.rows)
    state.until_boundary = state.next_batch - n_pending
    are_few = n_pending <= state.n_records and 0 < state.until_boundary <= state.batch_size
    expect(are_few, "fewer pending records than a learning batch")
    if n_pending > 0:
        state.pending = [pending]
    state.reference.restore(arrays)
    state.neighbours.restore(arrays, record_count(values["neighbours_taken"]))
    state.tail_mass.restore(arrays, state.neighbours.n)
    _restore_widths(state, arrays)


def _restore_widths(state: ScorerState, arrays: Arrays) -> None:
    """Restore the number of fields, and the ranges of the columns that the learner is given."""
    given = [*(piece.rows for piece in state.pending), state.reference.held.rows]
    columns, fields = _width(given), _width([state.neighbours.rows, state.tail_mass.mean])
    is_widened = state.entities is None or arrays["entity_reference"].size > 0
    history = state.history if is_widened else None
    if columns is None and fields is not None:
        columns = fields if history is None else history.n_columns(fields)
    if columns is not None:
        state.n_fields = columns if history is None else history.n_fields(columns)
    expect(fields in (None, state.n_fields), "all records to have as many fields")
    state.ranges.restore(arrays, columns)


def _width(kept: list[FloatArray]) -> int | None:
    """Return the columns of all arrays with rows, None if there are no rows."""
    widths = {rows.shape[1] for rows in kept if len(rows) > 0}
    expect(len(widths) <= 1, "all records to have as many fields")
    return widths.pop() if widths else None


def _restore_layers(state: ScorerState, values: Values, arrays: Arrays) -> None:
    """Restore the runs of values, and what states of other settings do not have."""
    state.repeats.restore(arrays, state.n_fields or 0)
    if state.categories is not None:
        state.categories.alone = bool(values.get("only_categories"))
        state.categories.restore(arrays, state.n_fields, _n_pending(state))
    if state.entities is not None:
        n_pending = _n_pending(state)
        scored = n_pending if state.learner.n_records_ > 0 else 0
        state.entities.restore(arrays, state.n_fields, n_pending, scored)
    if state.history is not None:
        state.history.restore(arrays, state.n_fields)
    if state.seasons is not None:
        n_pending = _n_pending(state) if state.has_units else 0
        state.seasons.restore(arrays, state.n_fields, n_pending)
    state.late.restore(arrays, state.n_fields, state.n_columns)
    if state.categories is not None:
        late, columns = state.late_categories, (state.n_fields or 0) + state.n_given
        late.restore(arrays, state.n_categories, columns)
        if len(late.rows) > 0:
            check_given(late.rows, _slots(state))
    if state.relevance.is_on:
        state.relevance.read_state(arrays)
    if state.silences is not None:
        held = 0 if state.entities is None else len(state.entities.roster)
        state.silences.restore(arrays, held)
    if state.rates is not None:
        state.rates.restore(arrays)
    if "incidents" in values:
        state.incidents = Incidents.restored(
            values["incidents"], arrays, (state.n_numbers or 0) + state.n_categories
        )


def _check_measures(state: ScorerState) -> None:
    """Refuse a state whose units are not those of as many measures as a record has."""
    if state.n_columns is None or state.learner.n_records_ == 0 or state.ranking.n == 0:
        return
    expect(len(state.learner.scale_) == state.n_columns, f"a learner of {state.n_columns} columns")
    k = 2 + int(state.has_nearness) + int(state.history is not None)
    expect(state.ranking.level.shape == (k,), f"{k} measures of each record")
    as_many = all(piece.measures.shape[1] == k for piece in state.pending)
    expect(as_many, f"{k} measures of each pending record")


def _slots(state: ScorerState) -> int:
    return 1 if state.entities is None else len(state.entities.roster)


def _n_pending(state: ScorerState) -> int:
    return sum(len(piece.rows) for piece in state.pending)


def _pending(state: ScorerState) -> Arrays:
    """Return the pending rows, their measures and marks, as arrays."""
    pieces = state.pending or [Pending.of(np.empty((0, 0)), np.empty(0), None)]
    columns = map(np.concatenate, zip(*pieces, strict=True))
    names = [f"pending_{name}" for name in Pending._fields]
    return dict(zip(names, columns, strict=True))
