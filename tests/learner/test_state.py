"""State as bytes: exact to the bit, and nothing but a clear error from anything else."""

import functools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter import examples
from streams import clusters

from faust_oslrau.learner import OSLRAU, StateError, StreamScorer
from faust_oslrau.learner.network import packing
from faust_oslrau.learner.network.layout import LEAF, MULTIVARIATE_LEAF, PRODUCT, SUM
from faust_oslrau.learner.state import MAGIC, pack, unpack

X = clusters(21, 1200, 4, missing=0.05)


def trained(n=600, **parameters):
    return OSLRAU(min_count=20, **parameters).partial_fit(X[:n], batch_size=30)


@pytest.mark.parametrize("parameters", [{}, {"max_leaf_vars": 0}, {"n_init_components": 1}])
def test_learning_after_a_round_trip_equals_learning_without_it(parameters):
    model = trained(**parameters)
    copy = OSLRAU.from_bytes(model.to_bytes())
    assert copy.to_bytes() == model.to_bytes()
    for start in range(600, 1200, 50):
        model.partial_fit(X[start : start + 50])
        copy.partial_fit(X[start : start + 50])
    assert copy.to_bytes() == model.to_bytes()
    assert copy.score_samples(X).tobytes() == model.score_samples(X).tobytes()
    for found, expected in zip(copy.given_others(X), model.given_others(X), strict=True):
        assert found.tobytes() == expected.tobytes()
    assert copy.structure_changes_ == model.structure_changes_
    assert copy.n_records_ == model.n_records_ == 1200


def test_a_model_without_data_keeps_its_parameters():
    copy = OSLRAU.from_bytes(OSLRAU(corr_threshold=0.3, max_nodes=None).to_bytes())
    assert (copy.corr_threshold, copy.max_nodes, copy.n_records_) == (0.3, None, 0)


@functools.cache
def scored_as_a_whole():
    scorer = StreamScorer(OSLRAU(min_count=32), batch_size=64)
    return scorer, scorer.process(X)


@settings(max_examples=examples(30))
@given(cut=st.integers(0, 1200))
def test_a_scorer_goes_on_from_any_record_to_the_same_bits(cut):
    whole, expected = scored_as_a_whole()
    scorer = StreamScorer(OSLRAU(min_count=32), batch_size=64)
    scorer.process(X[:cut])
    copy = StreamScorer.from_bytes(scorer.to_bytes())
    rest = copy.process(X[cut:])
    for name in ("log_likelihood", "p_value", "is_anomaly", "n_learned", "warming_up"):
        assert getattr(rest, name).tobytes() == getattr(expected, name)[cut:].tobytes()
    assert copy.to_bytes() == whole.to_bytes()


@settings(max_examples=examples(150))
@given(data=st.data())
def test_damaged_bytes_give_one_clear_error(data):
    good = STATES[data.draw(st.integers(0, len(STATES) - 1))]
    how = data.draw(st.sampled_from(["flip", "cut", "add"]))
    if how == "flip":
        at = data.draw(st.integers(0, len(good) - 1))
        bad = good[:at] + bytes([good[at] ^ data.draw(st.integers(1, 255))]) + good[at + 1 :]
    elif how == "cut":
        bad = good[: data.draw(st.integers(0, len(good) - 1))]
    else:
        bad = good + data.draw(st.binary(min_size=1, max_size=20))
    for read in (OSLRAU.from_bytes, StreamScorer.from_bytes):
        with pytest.raises(StateError):
            read(bad)


STATES = [trained(200).to_bytes(), OSLRAU().to_bytes()]


@settings(max_examples=examples(300))
@given(data=st.data())
def test_hostile_arrays_with_a_right_checksum_never_crash(data):
    """Whatever is accepted must still be a model that can score and learn."""
    values, arrays = unpack(STATES[0], "OSLRAU")
    name = data.draw(st.sampled_from(sorted(arrays)))
    array = arrays[name]
    if data.draw(st.booleans()) and len(array) > 0:
        at = data.draw(st.integers(0, len(array) - 1))
        elements = st.floats(width=64) if array.dtype.kind == "f" else st.integers(-128, 127)
        array[at] = data.draw(elements)
    else:
        arrays[name] = np.resize(array, data.draw(st.integers(0, len(array) + 3)))
    try:
        model = OSLRAU.from_bytes(pack("OSLRAU", values, arrays))
    except StateError:
        return
    assert np.isfinite(model.score_samples(X[:50])).all()
    model.partial_fit(X[:50])


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"kind": "OSLRAU", "values": {}, "arrays": []},
        {"kind": "OSLRAU", "values": {"parameters": {"evil": 1}, "n_records": 0}, "arrays": []},
        {"kind": "OSLRAU", "values": [], "arrays": [["a", "<f8", [2**60]]]},
        {"kind": "OSLRAU", "values": {}, "arrays": [["a", "O", [1]]]},
        {"kind": "OSLRAU", "values": {}, "arrays": [["a", "<f8", [-1]]]},
    ],
)
def test_headers_that_promise_what_is_not_there_are_refused(header):
    from hashlib import blake2b

    text = json.dumps(header).encode()
    body = MAGIC + len(text).to_bytes(4, "little") + text
    with pytest.raises(StateError):
        OSLRAU.from_bytes(body + blake2b(body, digest_size=16).digest())


@pytest.mark.parametrize("n_records", [-1, 2**70, float("inf"), None])
@pytest.mark.parametrize("learner", [OSLRAU, StreamScorer])
def test_what_is_no_number_of_records_is_refused(learner, n_records):
    model = OSLRAU() if learner is OSLRAU else StreamScorer(OSLRAU())
    values, arrays = unpack(model.to_bytes(), learner.__name__)
    with pytest.raises(StateError):
        learner.from_bytes(pack(learner.__name__, values | {"n_records": n_records}, arrays))


def test_a_weight_that_is_next_to_nothing_is_refused():
    values, arrays = unpack(STATES[0], "OSLRAU")
    arrays["weight"][:] = 1e-310
    with pytest.raises(StateError, match="positive weights"):
        OSLRAU.from_bytes(pack("OSLRAU", values, arrays))


def test_another_format_version_is_named():
    good = trained(100).to_bytes()
    with pytest.raises(StateError, match="format version 1, got 9"):
        OSLRAU.from_bytes(good[:7] + b"\x09" + good[8:])


def test_a_scorer_of_another_format_is_refused_by_name():
    values, arrays = unpack(StreamScorer(OSLRAU()).to_bytes(), "StreamScorer")
    del values["format"]  # as the first format was written
    with pytest.raises(StateError, match="expected format 9 of a scorer, got 1"):
        StreamScorer.from_bytes(pack("StreamScorer", values, arrays))


@pytest.mark.parametrize(
    "changes",
    [
        {
            "held_rows": np.zeros((4, 3)),
            "held_scores": np.zeros(4),
            "held_densities": np.zeros(4),
            "held_numbers": np.arange(4),
        },
        {"held_rows": np.zeros((4, 4))},
        {"recent_scores": np.zeros(3)},
        {"recent_marks": np.ones(4)},
        {"recent_densities": np.zeros(3)},
        {"drift_numbers": np.full(6, np.inf)},
        {"drift_numbers": np.array([-1.0, 0.5, 0.0, 0.0, 0.0, 0.0])},
        {"drift_reference": np.linspace(1.0, 0.0, 1024)},
        {
            "pending_rows": np.full((4, 4), np.inf),
            "pending_measures": np.zeros((4, 4)),
            "pending_marks": np.zeros(4),
        },
        {"pending_marks": np.zeros(1)},
        {"neighbours": np.zeros((4, 3)), "variance": np.ones(3)},
        {"variance": np.ones(2)},
        {"level": np.zeros(2), "spread": np.ones(2)},
        {"level": np.full(4, np.inf)},
        {"level": np.full(4, np.nan)},
        {"spread": np.full(4, np.inf)},
        {"mass_mean": np.zeros((1, 4))},
        {"mass_count": np.zeros(8)},
        {"mass_scale": np.full(4, np.inf)},
        {"mass_squares": np.full((8, 10), np.nan)},
        {
            "mass_location": np.zeros(3),
            "mass_scale": np.ones(3),
            "mass_count": np.ones(1),
            "mass_mean": np.zeros((1, 3)),
            "mass_sums": np.zeros((1, 3)),
            "mass_squares": np.zeros((1, 6)),
        },
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_arrays_that_do_not_fit_the_others_of_a_scorer_are_refused(changes):
    scorer = StreamScorer(OSLRAU())
    scorer.process(X)
    values, arrays = unpack(scorer.to_bytes(), "StreamScorer")
    assert changes.keys() <= arrays.keys()
    with pytest.raises(StateError):
        StreamScorer.from_bytes(pack("StreamScorer", values, arrays | changes))


@pytest.mark.parametrize("transforms", [[[1.5, "asinh"]], [["a", "log"]], [[0, "exp"]], 7])
def test_what_is_no_transform_is_refused(transforms):
    scorer = StreamScorer(OSLRAU())
    scorer.process(X)
    values, arrays = unpack(scorer.to_bytes(), "StreamScorer")
    with pytest.raises(StateError):
        StreamScorer.from_bytes(pack("StreamScorer", values | {"transforms": transforms}, arrays))


def crafted(kind, n_children, leaf_scope, d):
    """Return the state of a model with these nodes, children first, and no statistics."""
    values, arrays = unpack(STATES[0], "OSLRAU")
    leaves = np.count_nonzero(np.isin(kind, [LEAF, MULTIVARIATE_LEAF]))
    arrays = {name: array[:0] for name, array in arrays.items()} | {
        "location": np.zeros(d),
        "scale": np.ones(d),
        "kind": np.array(kind, np.int8),
        "n_children": np.array(n_children, np.int32),
        "weight": np.ones(len(kind)),
        "count": np.ones(len(kind)),
        "leaf_size": np.full(leaves, len(leaf_scope) // leaves, np.int32),
        "leaf_scope": np.array(leaf_scope, np.int32),
        **{name: np.ones(kind.count(LEAF)) for name in ("observed", "mean", "variance")},
        "changes": np.zeros(3, np.int64),
        "background": np.array([-1]),
    }
    return pack("OSLRAU", values, arrays)


def test_what_would_take_more_memory_than_the_state_has_is_refused_first():
    d = 200_000
    state = crafted([LEAF] * d + [PRODUCT], [0] * d + [d], range(d), d)
    with pytest.raises(StateError, match="statistics for each product and leaf"):
        OSLRAU.from_bytes(state)


def test_a_chain_of_sums_is_refused_before_it_is_built(monkeypatch):
    n = 200_000
    monkeypatch.setattr(packing, "Network", None)  # it would take half a minute
    state = crafted([LEAF] + [SUM] * n, [0] + [1] * n, [0], 1)
    with pytest.raises(StateError, match="nodes on a path"):
        OSLRAU.from_bytes(state)


def test_the_state_of_an_older_version_is_read_and_learns_further():
    model = OSLRAU.from_bytes(
        Path(__file__).with_name("golden").joinpath("format-1.bin").read_bytes()
    )
    rows = [[-0.69, -2.05, -6.28], [2.57, -1.57, -4.74], [1.34, np.nan, -5.91]]
    assert (model.n_records_, model.memory, model.max_nodes) == (400, 2000.0, 150)
    assert model.node_counts_ == {"sum": 1, "product": 23, "leaf": 57, "multivariate_leaf": 6}
    before = [-17.080024146444806, -16.567383516600103, -13.941851525131876]
    assert model.score_samples(rows) == pytest.approx(before, rel=1e-9)
    model.partial_fit(clusters(31, 400, 3, missing=0.05)[:100])
    after = [-13.246930479947766, -16.049080219217174, -12.834406871598063]
    assert model.n_nodes_ == 111
    assert model.score_samples(rows) == pytest.approx(after, rel=1e-9)


def test_a_scorers_bytes_are_no_model():
    with pytest.raises(StateError, match="'OSLRAU', got 'StreamScorer'"):
        OSLRAU.from_bytes(StreamScorer(OSLRAU()).to_bytes())


def test_the_state_of_a_node_takes_a_few_hundred_bytes():
    model = OSLRAU(min_count=20).partial_fit(clusters(22, 6000, 8), batch_size=64)
    assert model.n_nodes_ > 300
    assert len(model.to_bytes()) < 400 * model.n_nodes_
