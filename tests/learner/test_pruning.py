"""With a memory, what a stream no longer shows makes room for what it shows now."""

import numpy as np
import pytest
from interpreter import needs_compiler
from streams import changing

from faust_oslrau.learner import OSLRAU
from faust_oslrau.learner.algorithm.pruning import prune

D, N = 4, 4096


@needs_compiler("12,000 records")
@pytest.mark.parametrize("background", [True, False])
@pytest.mark.parametrize("max_leaf_vars", [0, None])
def test_what_is_left_is_a_density(background, max_leaf_vars):
    model = OSLRAU(
        memory=300, max_nodes=10**6, min_count=16, background=background,
        max_leaf_vars=max_leaf_vars, n_init_components=2,
    )  # fmt: skip
    for rows in changing(80, 3, N, D):
        model.partial_fit(rows, batch_size=64)
    network, before = model.network_, model.n_nodes_
    prune(network.pools, 0)
    assert 1 < model.n_nodes_ < before
    assert len(network.live) == model.n_nodes_
    again = OSLRAU.from_bytes(model.to_bytes())  # checks that the network is complete
    rows = changing(80, 3, N, D)[-1]
    np.testing.assert_array_equal(again.score_samples(rows), model.score_samples(rows))
    # one field integrates to one given the others, whichever components were removed
    grid = np.tile(rows[:1], (4001, 1))
    grid[:, 0] = np.linspace(-200, 300, 4001)
    rest = grid[:1].copy()
    rest[:, 0] = np.nan
    total = np.exp(model.score_samples(grid) - model.score_samples(rest)).sum() * 500 / 4000
    assert total == pytest.approx(1.0, abs=0.05)
    model.partial_fit(rows, batch_size=64)
    assert np.isfinite(model.score_samples(rows)).all()
