"""With a memory, what a stream no longer shows makes room for what it shows now."""

import numpy as np
import pytest
from interpreter import needs_compiler
from streams import changing, clusters

from faust_oslrau.learner import OSLRAU
from faust_oslrau.learner.algorithm.pruning import FADED, prune

D, N, BUDGET = 4, 4096, 160


def share_faded(model):
    weights = np.array([weight - 1.0 for _, weight in model.network_.children(model.network_.root)])
    return (weights < FADED).mean()


def learned(memory, stretches, batch_size=256):
    model = OSLRAU(memory=memory, max_nodes=BUDGET)
    for rows in stretches:
        model.partial_fit(rows, batch_size=batch_size)
    return model


@needs_compiler("37,000 records")
def test_a_full_model_goes_on_growing_where_the_stream_has_gone():
    stretches = changing(80, 8, N, D)
    model = learned(1000, stretches[:-1])
    before = model.structure_changes_["mixture"]
    model.partial_fit(stretches[-1], batch_size=256)
    assert model.structure_changes_["mixture"] > before + 5
    assert model.n_nodes_ <= BUDGET
    fresh = OSLRAU(max_nodes=BUDGET).partial_fit(stretches[-1], batch_size=256)
    test = clusters(87, 1000, D) + 140.0
    assert model.score_samples(test).mean() > fresh.score_samples(test).mean() - 1.0


@needs_compiler("12,000 records")
def test_without_a_memory_nothing_is_removed():
    model, components = OSLRAU(max_nodes=BUDGET), []
    for rows in changing(80, 3, N, D):
        for start in range(0, N, 256):
            network = model.partial_fit(rows[start : start + 256]).network_
            components.append(len([*network.children(network.root)]))
    assert model.structure_changes_["denied"] > 0
    assert components == sorted(components)


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
    assert share_faded(model) == 0
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
