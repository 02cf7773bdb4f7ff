"""Shares of two networks that follow each record, as a scorer weighs them after a change."""

import itertools
import math
from itertools import pairwise

import numpy as np
import pytest
from interpreter import INTERPRETED
from scipy.special import logsumexp
from streams import share_within

from faust_oslrau.learner import StackedSPN, StreamScorer
from faust_oslrau.learner.stream.shares import RATES, follow

if INTERPRETED:
    pytest.skip("needs the compiler: long streams", allow_module_level=True)

N = 4400
RNG = np.random.default_rng(17)
ROWS = RNG.normal(size=(N, 3))
IS_NEW = np.zeros(N, np.bool_)
IS_NEW[2100:3100] = IS_NEW[3400:3900] = IS_NEW[4150:] = True
ROWS[:, 1] = np.where(IS_NEW, -2.0, 2.0) * ROWS[:, 0] + 0.5 * ROWS[:, 1]  # no field is far off
ROWS[RNG.random(ROWS.shape) < 0.02] = np.nan
PLACES = np.column_stack([np.arange(N), 1_700_000_000_000 + 600_000 * np.arange(N)])
LAYERS = {"plain": {}, "history": {"history": ("10",)}}
BOUNDARY = 240 + 256 * 12
"""A learning boundary; within the next batch, the stream returns and changes again."""


def process(scorer, start, stop):
    return scorer.process(ROWS[start:stop], None, PLACES[start:stop])


@pytest.fixture(scope="module")
def scorers():
    """Scorers at the boundary, without history and with it."""
    found = {}
    for layers in LAYERS:
        learner = StackedSPN(retire_after=1100)
        found[layers] = StreamScorer(learner, alarm_rate=0.2, forecasting=True, **LAYERS[layers])
        process(found[layers], 0, BOUNDARY)
        assert len(found[layers].learner.shares) == 2, layers
    return {layers: scorer.to_bytes() for layers, scorer in found.items()}


def at_boundary(scorers, layers="plain"):
    scorer = StreamScorer.from_bytes(scorers[layers], StackedSPN)
    scorer.forecasting = True
    return scorer


def test_shares_agree_with_the_sum_over_all_paths():
    log_density = np.random.default_rng(0).normal(scale=2.0, size=(6, 2))
    start = np.array([0.7, 0.3])
    log_share = np.empty(log_density.shape)
    follow(log_density, start, RATES, start / np.full((len(RATES), 1), len(RATES)), log_share)
    for n in range(len(log_density)):
        joint = np.zeros(2)
        for rate, *path in itertools.product(RATES, *[[0, 1]] * (n + 1)):
            weight = start[path[0]] / len(RATES)
            for before, network in pairwise(path):
                weight *= (1.0 - rate) * (before == network) + rate * start[network]
            weight *= np.exp(sum(log_density[i, path[i]] for i in range(n)))
            joint[path[n]] += weight
        np.testing.assert_allclose(np.exp(log_share[n]), joint / joint.sum(), rtol=1e-8)


def test_log_likelihoods_are_those_of_fixed_share_in_plain_python(scorers):
    scorer = at_boundary(scorers)
    rows = ROWS[BOUNDARY : BOUNDARY + 256]
    start, each = scorer.learner.shares, scorer.learner.evaluate(rows).by_network
    found = scorer.process(rows).log_likelihood
    weights = [start / len(RATES) for _ in RATES]
    for i, log_density in enumerate(each):
        share = sum(weights)
        assert found[i] == pytest.approx(logsumexp(log_density, b=share), abs=1e-8)
        likelihood = np.exp(log_density - log_density.max())
        for a, rate in enumerate(RATES):
            posterior = weights[a] * likelihood / (share @ likelihood)
            weights[a] = (1.0 - rate) * posterior + rate * posterior.sum() * start


def test_each_row_is_asked_about_with_its_own_shares(scorers):
    learner = at_boundary(scorers).learner
    rows = ROWS[BOUNDARY + 60 : BOUNDARY + 70].copy()
    rows[::3, 1] = np.nan
    shares = np.linspace(0.05, 0.95, len(rows))
    weighed = learner.weighed(np.log(np.column_stack([shares, 1.0 - shares])))
    nats = weighed.given_others(rows)
    mean, quantiles = weighed.conditional_quantiles(rows, [0.1, 0.9])
    for r, row in enumerate(rows[:, None]):
        learner._contest.share = shares[r]  # the same shares for all rows
        alone = weighed.of(np.arange(len(rows)) == r)
        assert weighed.score_samples(rows)[r] == pytest.approx(learner.score_samples(row)[0])
        for found, own, expected in zip(
            nats, alone.given_others(row), learner.given_others(row), strict=True
        ):
            np.testing.assert_allclose(found[r], expected[0], rtol=1e-9)
            assert own[0].tobytes() == found[r].tobytes()
        expected = learner.conditional_quantiles(row, [0.1, 0.9])
        np.testing.assert_allclose(mean[r], expected[0][0], rtol=1e-9)
        np.testing.assert_allclose(quantiles[:, r], expected[1][:, 0], rtol=1e-6)


def test_the_band_has_98_percent_of_the_density_that_log_likelihoods_tell(scorers):
    scorer, after = at_boundary(scorers, "history"), 3402  # the shares are on their way
    process(scorer, BOUNDARY, after)
    places = PLACES[after : after + 1]
    state, band = scorer.to_bytes(), scorer.forecast(None, places[:, 1])
    found = share_within(band.low[0, 0], band.high[0, 0], 0, 3, state, StackedSPN, place=places)
    assert found == pytest.approx(0.98, abs=2e-3)


def test_records_of_two_kinds_in_random_order_lose_nothing(scorers):
    scorer = at_boundary(scorers)
    rows = np.concatenate([ROWS[500:628], ROWS[2500:2628]])
    rows = rows[np.random.default_rng(1).permutation(256)]
    at_the_root = scorer.learner.score_samples(rows)
    assert scorer.process(rows).log_likelihood.mean() > at_the_root.mean() - math.log(3) / 256
