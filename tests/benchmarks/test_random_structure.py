"""The random network that oSLRAU is compared with."""

import numpy as np
import pytest

from benchmarks.datasets import Setting
from benchmarks.random_structure import random_model, random_structure


@pytest.mark.parametrize(("d", "n_nodes"), [(1, 1), (2, 50), (3, 200), (8, 1000), (48, 3000)])
def test_it_has_at_least_as_many_nodes_and_covers_every_variable(d, n_nodes):
    model = random_model(d, n_nodes, seed=0)
    assert model.n_nodes_ >= n_nodes
    assert np.isfinite(model.score_samples(np.zeros((1, d)))).all()


def test_learning_changes_parameters_and_never_the_structure():
    X = np.random.default_rng(0).normal(2.0, 1.0, size=(400, 3))
    blank, learned = (
        random_model(3, 100, seed=1), random_structure(100, seed=1)([X], Setting(1, 10, 0))
    )  # fmt: skip
    assert learned.node_counts_ == blank.node_counts_
    assert learned.score_samples(X).mean() > blank.score_samples(X).mean() + 1.0


def test_seeds_give_different_structures():
    X = np.ones((1, 4))
    scores = {float(random_model(4, 60, seed).score_samples(X)[0]) for seed in range(3)}
    assert len(scores) == 3
