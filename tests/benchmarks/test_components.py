"""Networks drawn as mixtures."""

import numpy as np

from benchmarks.components import components_of
from benchmarks.toy import learn_toy, toy_data


def test_the_components_are_the_networks_density():
    X = toy_data(500, np.random.default_rng(0))
    model = learn_toy(X, 50)
    components = components_of(model.network_, range(3))
    assert len(components) > 4
    density = sum(
        c.weight
        * np.prod(
            [
                np.exp(-0.5 * (X[:, v] - c.means[v]) ** 2 / c.variances[v])
                / np.sqrt(2 * np.pi * c.variances[v])
                for v in range(3)
            ],
            axis=0,
        )
        for c in components
    )
    assert np.allclose(np.log(density), model.score_samples(X))
