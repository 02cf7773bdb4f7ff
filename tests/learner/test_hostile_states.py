"""Crafted states with a right checksum: refused by a StateError, or a scorer that goes on."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter import examples, needs_compiler

from faust_oslrau.learner import (
    OSLRAU,
    IncidentParameters,
    InvalidInputError,
    StackedSPN,
    StateError,
    StreamScorer,
)
from faust_oslrau.learner.state import pack, unpack

ROWS = np.random.default_rng(70).normal(size=(400, 3))
ROWS[:, 2] = ROWS[:, 2].round()  # a category where there are any
KEYS = [b"%d" % (row % 7) for row in range(len(ROWS))]
PLACES = np.arange(len(ROWS))[:, None] * [1, 600_000] + [0, 1_700_000_000_000]
EVERYTHING = {
    "history": ["4"],
    "seasons": "UTC",
    "incidents": IncidentParameters(),
    "silences": True,
}
SCORERS = {
    "plain": lambda: StreamScorer(OSLRAU()),
    "all layers": lambda: StreamScorer(
        StackedSPN(),
        max_entities=5,
        max_former_entities=5,
        entity_events=["new", "unusual"],
        **EVERYTHING,
    ),
    "without entities": lambda: StreamScorer(OSLRAU(), **EVERYTHING),
    "categories": lambda: StreamScorer(OSLRAU(), n_categories=1, **EVERYTHING),
}


def process(scorer, some, has_entities):
    return scorer.process(ROWS[some], KEYS[some] if has_entities else None, PLACES[some])


@pytest.fixture(scope="module", params=SCORERS)
def state(request):
    scorer = SCORERS[request.param]()
    process(scorer, slice(0, 300), request.param == "all layers")
    return scorer.to_bytes(), StackedSPN if request.param == "all layers" else OSLRAU


def changed(draw, array):
    """Return an array of another type, shape or content."""
    how = draw(st.sampled_from(["type", "cut", "more", "flat", "number", "all"]))
    if how == "type":
        with np.errstate(invalid="ignore", over="ignore"):
            return array.astype(draw(st.sampled_from(["<f8", "<f4", "<i8", "<i4", "|i1", "|u1"])))
    if how == "cut":
        return array[: draw(st.integers(0, 2))]
    if how == "more":
        return np.concatenate([array, array[:1]])
    if how == "flat":
        return array.reshape(draw(st.sampled_from([(-1,), (1, *array.shape)])))
    numbers = [-1, 0, 1, 2, 127]
    if array.dtype.kind == "f":
        numbers += [np.nan, np.inf, -np.inf, 1e300, -1e300, 5e-324]
    if array.dtype == np.int64:
        numbers += [2**62, -(2**62), 2**31]
    result, number = array.copy(), draw(st.sampled_from(numbers))
    with np.errstate(over="ignore"):
        at = (
            slice(None) if how == "all" or array.size == 0 else draw(st.integers(0, array.size - 1))
        )
        result.reshape(-1)[at] = np.asarray(number, np.float64 if array.dtype.kind == "f" else None)
    return result


WRONG = [None, True, -1, 0, 1.5, 2**70, float("nan"), float("inf"), "x", [], [None], {}, [[0, 1]]]


@needs_compiler("hundreds of scorers")
@settings(max_examples=examples(150), deadline=None)
@given(data=st.data())
def test_a_crafted_state_is_refused_or_goes_on(state, data):
    packed, learner = state
    values, arrays = unpack(packed, "StreamScorer")
    values = json.loads(json.dumps(values))
    kind = data.draw(st.sampled_from(["array", "array", "array", "value", "missing"]))
    name = data.draw(st.sampled_from(sorted(arrays if kind != "value" else values)))
    if kind == "array" and name != "learner":
        arrays[name] = np.ascontiguousarray(changed(data.draw, arrays[name]))
    elif kind == "value":
        inner = values
        if isinstance(values[name], dict) and data.draw(st.booleans()):
            inner, name = values[name], data.draw(st.sampled_from(sorted(values[name])))
        inner[name] = data.draw(st.sampled_from(WRONG))
    else:
        del arrays[name]
    try:
        scorer = StreamScorer.from_bytes(pack("StreamScorer", values, arrays), learner)
    except StateError:
        return
    try:
        process(scorer, slice(300, 400), values.get("max_entities") is not None)
    except InvalidInputError:  # a state of other settings wants other rows
        return
    scorer.to_bytes()
