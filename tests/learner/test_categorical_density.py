"""The density of records of numbers and categories, as an estimator."""

import functools
import itertools

import numpy as np
import pytest
from streams import BOUNDARIES, codes, losing
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


@pytest.mark.parametrize(("kind", "lost"), [(OSLRAU, 0.0), (WITH_MIXTURES, 0.0), (OSLRAU, 0.3)])
def test_the_density_is_that_of_a_stream_scorer(kind, lost):
    rows, scorer = losing(ROWS, lost, 2), StreamScorer(kind(), n_categories=2)
    density = CategoricalDensity(kind(), n_categories=2)
    for start, stop in BOUNDARIES:
        block = scorer.process(rows[start:stop])
        assert block.held_back == 0, "the guard must let all records pass"
        if start > 0:
            found = density.score_samples(rows[start:stop])
            np.testing.assert_allclose(found, block.log_likelihood, rtol=1e-12)
        density.partial_fit(rows[start:stop])


@pytest.mark.parametrize("n", [16, 300, 3000])
@pytest.mark.parametrize("sizes", [(3, 2, 4), (2, 2), (5, 3, 2, 2)])
def test_probabilities_of_categories_alone_sum_to_one(n, sizes):
    density = CategoricalDensity(n_categories=len(sizes))
    density.partial_fit(codes(1, n, sizes)[:, 1:], batch_size=256)
    values = [[*range(size), 99] for size in sizes]  # 99 stands for all that are not told apart
    every = np.array([*itertools.product(*values)], float)
    assert np.exp(density.score_samples(every)).sum() == pytest.approx(1.0)


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
