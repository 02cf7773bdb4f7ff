"""How large the parts of a StackedSPN are, and where its leaves begin."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from interpreter import needs_compiler

from faust_oslrau.learner import StackedSPN
from faust_oslrau.learner.stacked.leaves import WIDE, Leaves
from faust_oslrau.learner.stacked.training import sizes


@given(st.integers(1, 1000), st.integers(100, 20_000))
def test_the_parts_never_take_more_nodes_than_there_are(d, max_nodes):
    found = sizes(d, max_nodes, None)
    leaves = d * (found.leaves + len(WIDE) + 1)  # and the sum over the leaves of each field
    products = found.products * (d + 1)
    roots = 20
    total = roots + leaves + products + found.gaussians
    assert total <= max(max_nodes, 17 * d + 60)


def test_a_small_budget_alone_is_enough_to_shrink_the_whole_network():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1500, 8)) + 4.0 * rng.integers(0, 4, (1500, 1))
    small = StackedSPN(max_nodes=400).partial_fit(rows, batch_size=250)
    assert small.n_nodes_ <= 400


@needs_compiler("a long column")
def test_frequent_values_have_leaves_of_their_own_besides():
    rng = np.random.default_rng(5)
    column = np.where(rng.random(2000) < 0.5, rng.integers(0, 8, 2000), rng.normal(size=2000))
    leaves = Leaves.of_sample(column[:, None], 58, 58, 24)
    own = leaves.mean[len(WIDE) :]
    assert len(own) == 8 + 24
    assert set(range(8)) <= set(own.tolist())
