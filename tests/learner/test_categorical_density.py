"""The density of records of numbers and categories, as an estimator."""

import functools

import numpy as np
import pytest
from scipy import special, stats
from subjects import WITH_MIXTURES

from faust_oslrau.learner import OSLRAU, CategoricalDensity, StreamScorer

SHARES = [0.6, 0.3, 0.1]
LATENCY = [10.0, 100.0, 1000.0]
"""The mean latency of each service, with a tenth of it as deviation."""
FAILURES = [0.02, 0.2, 0.5]
"""The share of the status 503 of each service, 200 else."""


def requests(n, seed=0):
    """Return latencies, another number, services and statuses of so many requests."""
    rng = np.random.default_rng(seed)
    service = rng.choice(3, size=n, p=SHARES)
    latency = np.take(LATENCY, service) * rng.normal(1.0, 0.1, size=n)
    status = np.where(rng.random(n) < np.take(FAILURES, service), 503.0, 200.0)
    return np.column_stack([latency, rng.normal(size=n), service, status])


ROWS = requests(6000)


@functools.cache
def taught(kind=OSLRAU):
    return CategoricalDensity(kind(), n_categories=2).partial_fit(ROWS, batch_size=256)


@pytest.mark.parametrize("kind", [OSLRAU, WITH_MIXTURES])
def test_the_density_is_that_of_a_stream_scorer(kind):
    scorer, density = (
        StreamScorer(kind(), n_categories=2),
        CategoricalDensity(kind(), n_categories=2),
    )
    for start, stop in [(0, 16), (16, 48), (48, 112), (112, 240), (240, 496), (496, 752)]:
        block = scorer.process(ROWS[start:stop])
        assert block.held_back == 0, "the guard must let all records pass"
        if start > 0:
            found = density.score_samples(ROWS[start:stop])
            np.testing.assert_allclose(found, block.log_likelihood, rtol=1e-12)
        density.partial_fit(ROWS[start:stop])


@pytest.mark.parametrize("kind", [OSLRAU, WITH_MIXTURES])
def test_the_density_is_near_the_true_one(kind):
    test = requests(2000, seed=1)
    service = test[:, 2].astype(int)
    mean, fails = np.take(LATENCY, service), np.take(FAILURES, service)
    true = (
        np.log(np.take(SHARES, service))
        + np.log(np.where(test[:, 3] == 503.0, fails, 1.0 - fails))
        + stats.norm.logpdf(test[:, 0], mean, 0.1 * mean)
        + stats.norm.logpdf(test[:, 1])
    )
    assert np.mean(true - taught(kind).score_samples(test)) == pytest.approx(0.05, abs=0.1)


def test_probabilities_of_categories_alone_sum_to_one():
    density = CategoricalDensity(n_categories=2).partial_fit(ROWS[:, 2:], batch_size=256)
    values = [[0, 1, 2, 99], [200, 503, 99]]  # 99 stands for all that are not told apart
    rows = np.array([[a, b] for a in values[0] for b in values[1]], float)
    assert np.exp(density.score_samples(rows)).sum() == pytest.approx(1.0)


def test_contributions_are_conditional_densities():
    rows = requests(20, seed=2)
    rows[0, 2:] = np.nan
    found, density = taught().contributions(rows), taught().score_samples
    for i in range(2):
        without = rows.copy()
        without[:, i] = np.nan
        np.testing.assert_allclose(found[:, i], density(without) - density(rows), atol=1e-6)
    assert np.isnan(found[0, 2:]).all()
    statuses = np.tile(rows[1:], (3, 1, 1))
    statuses[:, :, 3] = np.array([200.0, 503.0, 404.0])[:, None]
    each = np.stack([density(part) for part in statuses])
    np.testing.assert_allclose(found[1:, 3], special.logsumexp(each, axis=0) - density(rows[1:]))


def test_what_is_usual_for_another_category_is_unlikely():
    usual, odd = taught().contributions([[100.0, 0.0, 1, 200], [100.0, 0.0, 0, 200]])
    assert usual[0] < 5 < odd[0] - 10
    assert odd[2] > usual[2] + 10  # another service would explain it


def test_missing_fields_are_filled_given_the_others():
    filled = taught().impute([[np.nan, 0.0, 1, 200], [1000.0, 0.0, np.nan, np.nan]])
    assert filled[0, 0] == pytest.approx(100.0, rel=0.05)
    assert filled[1, 2] == 2 and filled[1, 3] in (200, 503)


@pytest.mark.parametrize("kind", [OSLRAU, WITH_MIXTURES])
def test_samples_have_the_shares_and_the_relations_of_the_stream(kind):
    rows = taught(kind).sample(4000, random_state=0)
    assert rows.shape == (4000, 4)
    for service, share in enumerate(SHARES):
        of = rows[rows[:, 2] == service]
        assert len(of) / 4000 == pytest.approx(share, abs=0.03)
        assert of[:, 0].mean() == pytest.approx(LATENCY[service], rel=0.06)
        assert (of[:, 3] == 503.0).mean() == pytest.approx(FAILURES[service], abs=0.06)


def test_samples_hold_what_is_given():
    given = [np.nan, 1.5, np.nan, 503.0]
    rows = taught().sample(3000, given=given, random_state=0)
    assert (rows[:, [1, 3]] == [1.5, 503.0]).all()
    failing = np.multiply(SHARES, FAILURES)
    share = np.bincount(rows[:, 2].astype(int)) / 3000
    np.testing.assert_allclose(share, failing / failing.sum(), atol=0.04)


def test_a_service_is_drawn_by_its_latency():
    rows = taught().sample(200, given=[1000.0, np.nan, np.nan, np.nan], random_state=0)
    assert (rows[:, 2] == 2).all()
