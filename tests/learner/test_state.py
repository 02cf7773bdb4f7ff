"""State as bytes: exact to the bit, and nothing but a clear error from anything else."""

import json
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest
from streams import clusters

from faust_oslrau.learner import OSLRAU, StateError, StreamScorer
from faust_oslrau.learner.network import packing
from faust_oslrau.learner.network.layout import LEAF, MULTIVARIATE_LEAF, PRODUCT, SUM
from faust_oslrau.learner.state import MAGIC, pack, unpack

X = clusters(21, 1200, 4, missing=0.05)


def trained(n=600, **parameters):
    return OSLRAU(min_count=20, **parameters).partial_fit(X[:n], batch_size=30)


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
    text = json.dumps(header).encode()
    body = MAGIC + len(text).to_bytes(4, "little") + text
    with pytest.raises(StateError):
        OSLRAU.from_bytes(body + blake2b(body, digest_size=16).digest())


def test_another_format_version_is_named():
    good = trained(100).to_bytes()
    with pytest.raises(StateError, match="format version 1, got 9"):
        OSLRAU.from_bytes(good[:7] + b"\x09" + good[8:])


def test_a_scorer_of_another_format_is_refused_by_name():
    values, arrays = unpack(StreamScorer(OSLRAU()).to_bytes(), "StreamScorer")
    del values["format"]  # as the first format was written
    with pytest.raises(StateError, match="expected format 13 of a scorer, got 1"):
        StreamScorer.from_bytes(pack("StreamScorer", values, arrays))


def crafted(kind, n_children, leaf_scope, d):
    """Return the state of a model with these nodes, children first, and no statistics."""
    values, arrays = unpack(trained(200).to_bytes(), "OSLRAU")
    leaves = np.count_nonzero(np.isin(kind, [LEAF, MULTIVARIATE_LEAF]))
    arrays = {name: array[:0] for name, array in arrays.items()} | {
        "location": np.zeros(d), "scale": np.ones(d), "kind": np.array(kind, np.int8),
        "n_children": np.array(n_children, np.int32), "weight": np.ones(len(kind)),
        "count": np.ones(len(kind)),
        "leaf_size": np.full(leaves, len(leaf_scope) // leaves, np.int32),
        "leaf_scope": np.array(leaf_scope, np.int32),
        **{name: np.ones(kind.count(LEAF)) for name in ("observed", "mean", "variance")},
        "changes": np.zeros(3, np.int64), "background": np.array([-1]),
    }  # fmt: skip
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
    golden = Path(__file__).with_name("golden") / "format-1.bin"
    model = OSLRAU.from_bytes(golden.read_bytes())
    rows = [[-0.69, -2.05, -6.28], [2.57, -1.57, -4.74], [1.34, np.nan, -5.91]]
    assert (model.n_records_, model.memory, model.max_nodes) == (400, 2000.0, 150)
    assert model.node_counts_ == {"sum": 1, "product": 23, "leaf": 57, "multivariate_leaf": 6}
    before = [-17.080024146444806, -16.567383516600103, -13.941851525131876]
    assert model.score_samples(rows) == pytest.approx(before, rel=1e-9)
    model.partial_fit(clusters(31, 400, 3, missing=0.05)[:100])
    after = [-13.246930479947766, -16.049080219217174, -12.834406871598063]
    assert model.n_nodes_ == 111
    assert model.score_samples(rows) == pytest.approx(after, rel=1e-9)


def test_the_state_of_a_node_takes_a_few_hundred_bytes():
    model = OSLRAU(min_count=20).partial_fit(clusters(22, 6000, 8), batch_size=64)
    assert model.n_nodes_ > 300
    assert len(model.to_bytes()) < 400 * model.n_nodes_
