"""The compiled kernels against a plain-Python oracle, compared after every mini-batch."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter import examples
from naive import NaiveOSLRAU
from streams import changing, clusters

from faust_oslrau.learner import OSLRAU

CHANGES = ("mixture", "multivariate_leaf", "denied")


def models(d, **changes):
    """Return a model and its oracle, with the same parameters."""
    parameters = {
        "min_count": 10, "max_leaf_vars": 2, "n_init_components": 2, "variance_floor": 1e-3,
        "merges_per_batch": 1, "background": False, "memory": None, "max_nodes": None,
    } | changes  # fmt: skip
    fast = OSLRAU(standardize=False, corr_threshold=0.1, **parameters)
    return fast, NaiveOSLRAU(d, fast.get_params())


def assert_same_network(network, i, naive):
    """The same kinds, scopes, children in order, counts and parameters, down to the leaves."""
    record = network.nodes[i]
    assert network.scope(i).tolist() == naive.scope
    children = list(network.children(i))
    assert len(children) == len(getattr(naive, "children", []))
    if naive.kind == "sum":
        for (_, weight), count in zip(children, naive.counts, strict=True):
            assert same(weight - 1, count)
        assert same(record["count"], naive.n)
    elif naive.kind == "leaf":
        assert same(record["observed"], naive.observed)
        assert same(record["mean"], naive.mean, 1e-9)
        assert same(record["variance"], naive.variance)
    else:
        assert_same_moments(network, record, naive)
    for (child, _), expected in zip(children, getattr(naive, "children", []), strict=True):
        assert_same_network(network, child, expected)


def assert_same_moments(network, record, naive):
    k, block, scope = record["n_scope"], record["stats"], naive.scope
    mean = network.stats[block : block + k]
    matrix = network.stats[block + 2 * k : block + 2 * k + k * k].reshape(k, k)
    np.testing.assert_allclose(mean, [naive.moments.mean[v] for v in scope], rtol=1e-9, atol=1e-9)
    expected = np.triu(naive.moments.matrix(scope))
    np.testing.assert_allclose(np.triu(matrix), expected, rtol=1e-7, atol=1e-9)
    for a, v in enumerate(scope):
        assert same(network.stats[block + k + a], naive.moments.seen[v, v])
        for b in range(a):
            assert same(matrix[a, b], naive.moments.seen[scope[b], v])


def same(number, expected, relative=1e-6):
    """Compare up to rounding; `pytest.approx` takes most of the time of so many comparisons."""
    return math.isclose(number, expected, rel_tol=relative, abs_tol=1e-9)


def assert_learns_the_same(fast, slow, X, batch_size, X_test):
    for start in range(0, len(X), batch_size):
        fast.partial_fit(X[start : start + batch_size])
        slow.partial_fit(X[start : start + batch_size])
        assert_same_network(fast.network_, fast.network_.root, slow.root)
        assert fast.structure_changes_ == {kind: slow.events[kind] for kind in CHANGES}
        assert fast.n_nodes_ == slow.n_nodes()
        fast.network_.check_validity()
    found, expected = fast.score_samples(X_test), slow.score_samples(X_test)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


def lower_budget(fast, slow, max_nodes):
    fast.set_params(max_nodes=max_nodes)
    slow.max_nodes = max_nodes


@pytest.mark.parametrize("max_leaf_vars", [0, 2])
@pytest.mark.parametrize(("missing", "background"), [(0.0, False), (0.2, True)])
def test_what_a_budget_denies_equals_the_oracle_each_batch(max_leaf_vars, missing, background):
    fast, slow = models(
        5, min_count=5, max_leaf_vars=max_leaf_vars, background=background, max_nodes=25
    )
    X = clusters(5, 160, 5, missing)
    assert_learns_the_same(fast, slow, X, 4, clusters(6, 20, 5, missing))
    assert slow.events["mixture"] > 0 and slow.events["denied"] > 0


@pytest.mark.parametrize("max_leaf_vars", [0, 2])
@pytest.mark.parametrize(("missing", "background"), [(0.0, False), (0.1, True)])
def test_what_a_memory_removes_equals_the_oracle_each_batch(max_leaf_vars, missing, background):
    X = np.concatenate(changing(0, 4, 40, 6, missing, step=8.0))
    fast, slow = models(
        6, min_count=4, max_leaf_vars=max_leaf_vars, background=background, memory=40,
        max_nodes=10**6,
    )  # fmt: skip
    assert_learns_the_same(fast, slow, X[:120], 4, X[120:])
    assert slow.events["removed"] == 0
    # a budget far below the nodes that there are takes components from sums at every depth
    lower_budget(fast, slow, 6 * slow.n_nodes() // 10)
    assert_learns_the_same(fast, slow, X[120:], 4, X)
    assert slow.events["removed"] > 0 and slow.events["dissolved"] > 0


@pytest.mark.parametrize("background", [False, True])
def test_the_last_component_stays_however_faded(background):
    fast, slow = models(2, n_init_components=6, background=background, memory=1, max_nodes=21)
    X = clusters(7, 40, 2)
    assert_learns_the_same(fast, slow, X, 4, X)
    lower_budget(fast, slow, 3)
    assert_learns_the_same(fast, slow, X, 4, X)
    assert len(slow.root.children) == 1 + background


@settings(max_examples=examples(40))
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 6),
    batch_size=st.integers(1, 40),
    missing=st.sampled_from([0.0, 0.0, 0.1, 0.6]),
    parameters=st.fixed_dictionaries(
        {
            # two or three rows correlate all pairs alike, up to rounding
            "min_count": st.integers(4, 30),
            "max_leaf_vars": st.integers(0, 5),
            "n_init_components": st.integers(1, 3),
            "merges_per_batch": st.sampled_from([1, 2, 6]),
            "background": st.booleans(),
            "memory": st.sampled_from([None, 10, 30, 500]),
            "max_nodes": st.sampled_from([None, 9, 40, 100]),
        }
    ),
)
def test_any_stream_and_settings_equal_the_oracle(seed, d, batch_size, missing, parameters):
    X = np.concatenate(changing(seed, 3, 40, d, missing, step=8.0))
    fast, slow = models(d, **parameters)
    assert_learns_the_same(fast, slow, X, batch_size, clusters(seed + 1, 20, d, missing))


@pytest.mark.parametrize("structure_until", [0, 200])
def test_the_structure_is_learned_up_to_the_named_number_of_records(structure_until):
    X = clusters(4, 400, 4)
    fast, slow = models(4)
    fast.set_params(structure_until=structure_until)
    for start in range(0, 400, 20):
        fast.partial_fit(X[start : start + 20])
        slow.partial_fit(X[start : start + 20], grow=start < structure_until)
    assert_same_network(fast.network_, fast.network_.root, slow.root)
    assert (sum(fast.structure_changes_.values()) > 0) == (structure_until > 0)
