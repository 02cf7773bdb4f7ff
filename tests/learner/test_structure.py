"""The network is what it should be after every change of its structure."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter import examples
from pytest import approx
from streams import clusters

from faust_oslrau.learner import OSLRAU
from faust_oslrau.learner._layout import FIRST, LEAF, MULTIVARIATE_LEAF, NIL, PRODUCT, SUM
from faust_oslrau.learner._structure import deepest

INNER = (SUM, PRODUCT)


def assert_complete_and_decomposable(network):
    """Scopes of a sum's children are equal, those of a product's make up its own."""
    assert list(network.scope(network.root)) == list(range(network.n_variables))
    for i in network.live:
        scopes = [list(network.scope(child)) for child, _ in network.children(i)]
        if network.nodes[i]["kind"] == SUM:
            assert scopes and all(scope == list(network.scope(i)) for scope in scopes)
        elif network.nodes[i]["kind"] == PRODUCT:
            assert sorted(v for scope in scopes for v in scope) == list(network.scope(i))


def assert_a_tree_of_bounded_depth(network):
    parents = [child for i in network.live for child, _ in network.children(i)]
    assert sorted([*parents, network.root]) == sorted(network.live)
    assert len(network.live) == network.n_nodes
    assert network.depth <= deepest(network.n_variables)
    for i in network.live:
        kind, n_children = network.nodes[i]["kind"], len([*network.children(i)])
        assert n_children == network.nodes[i]["n_children"]
        assert (n_children > 0) == (kind in INNER)


def assert_listed_children_first(network):
    listed, i = [], int(network.header[FIRST])
    while i != NIL:
        listed.append(i)
        i = int(network.nodes[i]["next"])
    place = {node: k for k, node in enumerate(listed)}
    assert set(place) == {i for i in network.live if network.nodes[i]["kind"] != LEAF}
    for i in listed:
        assert all(place.get(child, -1) < place[i] for child, _ in network.children(i))


def assert_sound_numbers(network, forgetting):
    """Weights are one more than a count; a sum counted what its children did, and those dropped."""
    for i in network.live:
        node = network.nodes[i]
        weights = np.array([weight for _, weight in network.children(i)])
        if node["kind"] == SUM:
            assert (weights > 1.0 - 1e-9).all()
            counted, whole = (weights - 1.0).sum(), approx(node["count"], 1e-9)
            assert counted == whole or (forgetting and counted < node["count"])
        if node["kind"] == LEAF:
            assert node["variance"] >= 0.0 and node["precision"] > 0.0
        if node["kind"] == MULTIVARIATE_LEAF:
            assert (np.linalg.eigvalsh(network.gaussian(i)[1]) > 0.0).all()


@settings(max_examples=examples(40))
@given(
    seed=st.integers(0, 10_000),
    d=st.integers(1, 5),
    batch_size=st.sampled_from([1, 8, 64]),
    missing=st.sampled_from([0.0, 0.2]),
    background=st.booleans(),
    max_nodes=st.sampled_from([60, 2_000]),
    max_leaf_vars=st.sampled_from([0, 2, 16]),
    memory=st.sampled_from([None, 200.0]),
)
def test_every_network_on_the_way_is_valid(seed, d, batch_size, missing, **options):
    model, before = OSLRAU(min_count=8, **options), None
    for batch in np.array_split(clusters(seed, 384, d, missing), 384 // batch_size):
        model.partial_fit(batch)
        changes = (model.structure_changes_, model.n_nodes_)
        if changes != before:
            network = model.network_
            assert_complete_and_decomposable(network)
            assert_a_tree_of_bounded_depth(network)
            assert_listed_children_first(network)
            assert_sound_numbers(network, options["memory"])
        before = changes
