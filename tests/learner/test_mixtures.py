"""The mixtures beside the grown components: where they begin, and what they learn."""

import itertools

import numpy as np
import pytest
from densities import log_density
from streams import clusters

from faust_oslrau.learner import OSLRAU
from faust_oslrau.learner.algorithm.expectation_maximisation import count_as_one, fit_products
from faust_oslrau.learner.algorithm.mixtures import FIRST_RECORDS, Leaves, mixture_sizes
from faust_oslrau.learner.network.layout import MULTIVARIATE_LEAF, PRODUCT, SUM


def begun(d=3, n=FIRST_RECORDS, missing=0.0, **parameters):
    """Return a model whose mixtures have just begun."""
    X = clusters(4, n, d, missing)
    X[:, 0] = X[:, 0].round()
    parameters = {"mixtures": True} | parameters
    return OSLRAU(standardize=False, **parameters).partial_fit(X, batch_size=60)


def mixtures(network):
    """The mixtures by kind of component, with their weights."""
    children = {child: weight for child, weight in network.children(network.root)}
    found = [child for child in children if network.nodes[child]["kind"] == SUM]
    kinds = [network.nodes[next(network.children(child))[0]]["kind"] for child in found]
    return {kind: (child, children[child]) for kind, child in zip(kinds, found, strict=True)}


def shares(network, i, rows):
    """Each child of a sum, its weight, and its shares (m,) in the sum's density."""
    joint, total = log_density(network, i, rows), sum(w for _, w in network.children(i))
    for child, weight in network.children(i):
        yield child, weight, np.exp(log_density(network, child, rows) - joint) * weight / total


def averages(values, share, n, mean, square):
    """Weighted running averages of values and of products about the new mean, for one variable."""
    share = np.where(np.isnan(values), 0.0, share)
    values = np.nan_to_num(values)
    learned = n + share.sum()
    new = (n * mean + share @ values) / learned
    return learned, new, (n * (square + (mean - new) ** 2) + share @ (values - new) ** 2) / learned


def learned_leaves(network, rows):
    """What each leaf of the products is to have after a mini-batch: weight, and averages."""
    for child, _, of_product in shares(network, mixtures(network)[PRODUCT][0], rows):
        of_product = np.where(of_product > 1e-2, of_product, 0.0)
        for factor, _ in network.children(child):
            v = network.scope(factor)[0]
            for leaf, weight, own in shares(network, factor, rows):
                node, known = network.nodes[leaf], ~np.isnan(rows[:, v])
                share = np.where(known, of_product * own, 0.0)
                numbers = node["observed"], node["mean"], node["variance"]
                yield weight + share.sum(), *averages(rows[:, v], share, *numbers)


def leaves(network):
    """The same of a network."""
    for product, _ in network.children(mixtures(network)[PRODUCT][0]):
        for factor, _ in network.children(product):
            for leaf, weight in network.children(factor):
                node = network.nodes[leaf]
                yield weight, node["observed"], node["mean"], node["variance"]


def learned_gaussians(network, rows):
    """What each Gaussian is to have: count, weight, mean, and a covariance from pairs of values."""
    for leaf, weight, share in shares(network, mixtures(network)[MULTIVARIATE_LEAF][0], rows):
        share, k = np.where(share > 1e-2, share, 0.0), rows.shape[1]
        mean, seen, *matrix = network.statistics(leaf).reshape(k + 2, k)
        new, covariance = np.empty(k), np.zeros((k, k))
        for a in range(k):
            numbers = seen[a], mean[a], matrix[a][a]
            _, new[a], covariance[a, a] = averages(rows[:, a], share, *numbers)
        for a, b in itertools.combinations(range(k), 2):
            both = ~np.isnan(rows[:, [a, b]]).any(axis=1)
            n, own = matrix[b][a], share[both]
            old = n * (matrix[a][b] + (mean[a] - new[a]) * (mean[b] - new[b]))
            products = (rows[both, a] - new[a]) * (rows[both, b] - new[b])
            covariance[a, b] = (old + own @ products) / (n + own.sum())
        count = network.nodes[leaf]["count"] + share.sum()
        yield count, weight + share.sum(), new, covariance


def gaussians(network):
    """The same of a network."""
    for leaf, weight in network.children(mixtures(network)[MULTIVARIATE_LEAF][0]):
        mean, _, *matrix = network.statistics(leaf).reshape(-1, network.n_variables)
        yield network.nodes[leaf]["count"], weight, mean, np.triu(matrix)


@pytest.mark.parametrize(("m", "missing"), [(40, 0.0), (33, 0.2), (1, 0.0)])
def test_a_mini_batch_is_one_step_of_expectation_maximisation(m, missing):
    model, rows = begun(), clusters(9, m, 3, missing)
    network = model.network_
    expected = list(learned_leaves(network, rows)), list(learned_gaussians(network, rows))
    model.partial_fit(rows)
    for own, found in zip((leaves, gaussians), expected, strict=True):
        for numbers, wanted in zip(own(model.network_), found, strict=True):
            for number, exact in zip(numbers, wanted, strict=True):
                np.testing.assert_allclose(number, exact, rtol=1e-6, atol=1e-9)


def test_the_weight_of_a_mixture_is_its_mean_share_of_the_records_less_its_cost():
    model, expected, n = begun(), {PRODUCT: 1 / 3, MULTIVARIATE_LEAF: 1 / 3}, 3
    for batch in np.split(clusters(9, 900, 3), 9):
        network = model.network_
        own = {child: share for child, _, share in shares(network, network.root, batch)}
        for kind, (child, _) in mixtures(network).items():
            share = (expected[kind] * n + own[child].sum() - 0.05 * 100) / (n + 100)
            expected[kind] = max(share, 1e-2)
        n = min(n + 100, 512)
        model.partial_fit(batch)
        network = model.network_
        total = sum(weight for _, weight in network.children(network.root))
        for kind, (_, weight) in mixtures(network).items():
            assert weight / total == pytest.approx(expected[kind], rel=0.02)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_fitting_is_the_same_step_after_what_was_known_counts_as_one_record(missing):
    network, rows = begun().network_, clusters(9, 45, 3, missing)
    mixture, _ = mixtures(network)[PRODUCT]
    count_as_one(network.pools, mixture, 1e-9)
    assert all(observed == 1.0 for _, observed, _, _ in leaves(network))
    expected = list(learned_leaves(network, rows))
    fit_products(network.pools, np.ascontiguousarray(rows.T), mixture, 1, 1e-9)
    for numbers, wanted in zip(leaves(network), expected, strict=True):
        np.testing.assert_allclose(numbers, wanted, rtol=1e-6, atol=1e-9)


def test_frequent_values_have_leaves_of_their_own():
    z = np.append(np.repeat([0.0, 1.0], 40), np.random.default_rng(0).normal(5.0, 1.0, size=40))
    found = Leaves.of_values(z, 8)
    assert {0.0, 1.0} <= set(found.mean) and len(found.mean) <= 8
    assert found.part[found.variance < 1e-3] == pytest.approx([1 / 3, 1 / 3])


def test_half_of_the_weight_in_a_product_is_by_the_value_that_it_begins_with():
    found = Leaves.of_values(np.repeat([0.0, 1.0, 2.0, 3.0], 5), 8)
    np.testing.assert_allclose(found.weights(found.mean), 0.125 + 0.5 * np.eye(4))
    np.testing.assert_allclose(found.weights(np.array([np.nan])), [[0.25] * 4])


@pytest.mark.parametrize("d", [1, 2, 5, 30, 200])
@pytest.mark.parametrize("max_nodes", [20, 300, 2000])
def test_mixtures_stay_within_a_third_of_the_budget(d, max_nodes):
    sizes = mixture_sizes(d, max_nodes)
    assert sizes.nodes(d) <= (max_nodes / 3 if d < 129 else 0)  # then without any
    if d <= 5:
        model = begun(d, 1500, max_nodes=max_nodes, min_count=20)
        assert model.n_nodes_ <= max(max_nodes, d + 3)
        model.network_.check_validity()


@pytest.mark.parametrize("parameters", [{"mixtures": False}, {"structure_until": 300}])
def test_a_network_that_is_to_have_none_has_none(parameters):
    assert mixtures(begun(**parameters).network_) == {}


def test_repeated_values_and_bent_relations_are_likelier_than_without_mixtures():
    rng = np.random.default_rng(3)
    angle = rng.uniform(0, 2 * np.pi, size=3000)
    X = np.column_stack([np.cos(angle), np.sin(angle), rng.poisson(2.0, size=3000)])
    X[:, :2] += 0.05 * rng.normal(size=(3000, 2))
    gain = [
        OSLRAU(mixtures=mixtures).partial_fit(X[:2000], batch_size=100)
        .score_samples(X[2000:], variance_floor=1e-4).mean()
        for mixtures in (True, False)
    ]  # fmt: skip
    assert gain[0] > gain[1] + 1.0
