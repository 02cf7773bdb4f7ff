"""The network is what it should be after every change of its structure."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter import examples
from pytest import approx
from streams import clusters

from faust_oslrau.learner import OSLRAU
from faust_oslrau.learner.errors import InvalidNetworkError
from faust_oslrau.learner.network.layout import LEAF, PRODUCT, SUM
from faust_oslrau.learner.network.layout import MULTIVARIATE_LEAF as WIDE_LEAF


def assert_counts_that_add_up(network, forgetting):
    """Weights are one more than a count; a sum counted what its children did, and those dropped."""
    for i in network.live:
        node = network.nodes[i]
        weights = np.array([weight for _, weight in network.children(i)])
        if node["kind"] == SUM:
            assert (weights > 1.0 - 1e-9).all()
            counted, whole = (weights - 1.0).sum(), approx(node["count"], 1e-9)
            assert counted == whole or (forgetting and counted < node["count"])
        if node["kind"] == WIDE_LEAF:
            assert (np.linalg.eigvalsh(network.gaussian(i)[1]) > 0.0).all()


@settings(max_examples=examples(40))
@given(
    seed=st.integers(0, 10_000), d=st.integers(1, 5),
    batch_size=st.sampled_from([1, 8, 64]), missing=st.sampled_from([0.0, 0.2]),
    background=st.booleans(), max_nodes=st.sampled_from([15, 60, 2_000]),
    max_leaf_vars=st.sampled_from([0, 2, 16]), memory=st.sampled_from([None, 200.0]),
)  # fmt: skip
def test_every_network_on_the_way_is_valid(seed, d, batch_size, missing, **options):
    model, before = OSLRAU(min_count=8, **options), None
    for batch in np.array_split(clusters(seed, 384, d, missing), 384 // batch_size):
        model.partial_fit(batch)
        assert model.n_nodes_ <= options["max_nodes"]
        changes = (model.structure_changes_, model.n_nodes_)
        if changes != before:
            network = model.network_
            network.check_validity()
            assert_counts_that_add_up(network, options["memory"])
        before = changes


@pytest.mark.parametrize(
    ("kind", "member", "change", "expected"),
    [
        (LEAF, "scope", lambda scope: scope ^ 1, "disjoint scopes"),
        (PRODUCT, "n_scope", lambda n: n - 1, "equal scopes|disjoint scopes"),
        (PRODUCT, "n_children", lambda n: n - 1, "as many children"),
        (LEAF, "variance", lambda _: -1.0, "no negative variance"),
    ],
)
def test_a_damaged_network_is_not_valid(kind, member, change, expected):
    model = OSLRAU(min_count=8, max_leaf_vars=0)
    network = model.partial_fit(clusters(3, 600, 4), batch_size=64).network_
    network.check_validity()
    node = next(i for i in network.live if network.nodes[i]["kind"] == kind)
    network.nodes[member][node] = change(network.nodes[member][node])
    with pytest.raises(InvalidNetworkError, match=expected):
        network.check_validity()
