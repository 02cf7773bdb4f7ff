"""Records with categories: exact probabilities, numbers given them, and which are to blame."""

import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter import examples
from scipy.stats import norm
from streams import blame_of, codes, learned_by

from faust_oslrau.learner import OSLRAU, CategoricalDensity, StreamScorer
from faust_oslrau.learner.categories.layer import Categories
from faust_oslrau.learner.categories.values import MISSING, Values

N = 6000
SLOW, QUICK, BATCH = range(3)
OK, MOVED, FAILED = 200.0, 301.0, 503.0
SHARES, LEVELS, SPREADS = np.array([[0.3, 0.6, 0.1], [5.0, 1.0, 9.0], [0.5, 0.1, 0.5]])
"""Of each service: its share of the records, and level and spread of its latency."""


def requests(seed=0, n=N):
    """Rows of latency, size, service and status: latency and status depend on the service."""
    rng = np.random.default_rng(seed)
    service = rng.choice(3, n, p=SHARES)
    latency = rng.normal(LEVELS[service], SPREADS[service])
    moved = (service == SLOW) & (rng.random(n) < 0.5)
    status = np.where(moved, MOVED, np.where(rng.random(n) < 0.002, FAILED, OK))
    return np.column_stack([latency, rng.normal(size=n), service, status])


@pytest.mark.parametrize("n", [16, 300, 3000])
@pytest.mark.parametrize("sizes", [(3, 2, 4), (2, 2), (5, 3, 2, 2)])
def test_probabilities_of_categories_alone_sum_to_one(n, sizes):
    density = CategoricalDensity(n_categories=len(sizes))
    density.partial_fit(codes(1, n, sizes)[:, 1:], batch_size=256)
    values = [[*range(size), 99] for size in sizes]  # 99 stands for all that are not told apart
    every = np.array([*itertools.product(*values)], float)
    assert np.exp(density.score_samples(every)).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(4))
def test_the_probability_without_some_categories_is_the_sum_over_their_values(seed):
    rng = np.random.default_rng(seed)
    a = rng.integers(3, size=800)
    b, e = (np.where(rng.random(800) < 0.9, (a + k) % 3, rng.integers(3, size=800)) for k in (1, 2))
    c, d = (np.where(rng.random(800) < 0.9, b, rng.integers(3, size=800)) for _ in range(2))
    rows = np.column_stack([rng.normal(size=800), a, b, c, d, e])
    layer = learned_by(Categories(5), rows)
    assert (layer.counts.parent >= 0).sum() == 4
    for row in rows[:12]:
        missing = rng.random(5) < 0.5
        values = [[0, 1, 2, 99] if gone else [x] for gone, x in zip(missing, row[1:], strict=True)]
        every = np.array([[0.0, *filled] for filled in itertools.product(*values)])
        row[1:][missing] = np.nan
        found = layer.average(row[None]).log_probability[0]
        assert np.exp(found) == pytest.approx(np.exp(layer.average(every).log_probability).sum())


def test_what_was_never_seen_is_as_likely_as_what_came_once():
    rows = np.zeros((1000, 2))
    rows[[10, 20], 1] = 7, 8  # once each, as three others might
    layer = learned_by(Categories(1), rows)
    unseen, once, usual = np.exp(layer.take(np.array([[0, 9], [0, 7], [0, 0.0]])).log_probability)
    assert unseen == pytest.approx(3 / 1003)
    assert once == pytest.approx(1 / 1003)
    assert usual == pytest.approx(998 / 1003)


def naive_probability(rows, row, parent, f):
    """Return the probability of a row's category given that of its parent, counted with lists."""
    value, column = row[f], [other[f] for other in rows]
    once = sum(column.count(v) == 1 for v in set(column))
    n = len(column) + 1 + once
    p = column.count(value) / n if value in column else (1 + once) / n
    if parent[f] >= 0:
        given = [other[f] for other in rows if other[parent[f]] == row[parent[f]]]
        room = 1 + sum(given.count(v) == 1 for v in set(given))
        p = (given.count(value) + room * p) / (len(given) + room)
    return p


def naive_shares(rows, row, parent, f):
    """Return the probability of each category that a row might have in place of its own."""
    values = {other[f] for other in rows} | {"new"}
    every = [[*row[:f], value, *row[f + 1 :]] for value in values]
    return [naive_probability(rows, other, parent, f) for other in every]


def naive_average(rows, parent, f):
    """Return the average log-probability of a category, over the values of its parent."""
    given = parent[f] if parent[f] >= 0 else f
    values = [*{row[given] for row in rows}, "new"]
    total = 0.0
    for value in values if parent[f] >= 0 else values[:1]:
        row = [value] * len(rows[0])
        weight = naive_probability(rows, row, [-1] * len(row), given) if parent[f] >= 0 else 1.0
        total += weight * sum(p * math.log(p) for p in naive_shares(rows, row, parent, f))
    return total


def naive_log_rarity(rows, row, parent):
    """Return the logarithm of how likely a category as rare as the rarest of a row is."""
    rarest = 1.0
    for f in range(len(row)):
        shares = naive_shares(rows, row, parent, f)
        own = naive_probability(rows, row, parent, f)
        rarest = min(rarest, sum(p for p in shares if p <= 4.0 * own))
    return math.log(1.0 - (1.0 - rarest) ** len(row)) if rarest < 1.0 else 0.0


@given(st.integers(0, 10**6), st.integers(20, 400))
@settings(max_examples=examples(20), deadline=None)
def test_probabilities_are_those_of_counts(seed, n):
    rows = codes(seed, n, (3, 3, 2))
    layer = learned_by(Categories(3), rows)
    seen = [tuple(row) for row in rows[:, 1:].tolist()]
    found = layer.take(rows[:20])
    parent = layer.counts.parent
    average = sum(naive_average(seen, parent, f) for f in range(3))
    for row, p, usual, rarity in zip(seen, *found.of_categories.T, strict=False):
        shares = [naive_probability(seen, row, parent, f) for f in range(3)]
        assert p == pytest.approx(np.log(shares).sum())
        assert usual == pytest.approx(average)
        assert rarity == pytest.approx(naive_log_rarity(seen, row, parent), abs=1e-9)


def test_the_log_likelihood_is_that_of_the_categories_and_of_the_numbers_given_them(kind):
    rows = requests(n=20_000)
    block = StreamScorer(kind(), n_categories=2).process(rows)
    service, status = rows[:, 2].astype(int), rows[:, 3]
    p_service = np.log(SHARES)[service]
    shares = {(SLOW, MOVED): 0.5, (SLOW, OK): 0.499, (SLOW, FAILED): 0.001}
    usual = np.where(status == OK, 0.998, 0.002)
    p_status = np.log([*map(shares.get, zip(service, status, strict=True), usual)])
    numbers = norm(LEVELS[service], SPREADS[service]).logpdf(rows[:, 0]) + norm.logpdf(rows[:, 1])
    late = slice(10_000, None)
    true = (p_service + p_status + numbers)[late].mean()
    assert block.log_likelihood[late].mean() == pytest.approx(true, abs=0.05)


def blame_of_late(row):
    """Return the fields to blame for a record among requests, and all that is told of them."""
    rows = requests()
    rows[5000] = row
    return blame_of(StreamScorer(OSLRAU(), alarm_rate=0.005, n_categories=2).process(rows), 5000)


def test_a_number_that_is_usual_for_another_category_is_an_anomaly_and_alone_to_blame():
    blamed, blame = blame_of_late([9.0, 0.0, QUICK, OK])
    assert blamed == [0]
    assert blame.expected[0] == pytest.approx(1.0, abs=0.1)
    assert blame.deviation[0] == pytest.approx(0.1, abs=0.03)


def test_two_categories_that_never_come_together_are_an_anomaly_and_one_is_to_blame():
    blamed, blame = blame_of_late([9.0, 0.0, BATCH, MOVED])
    assert blamed == [3]  # the latency is one of a batch
    assert (blame.value[3], blame.expected[3]) == (MOVED, OK)
    assert blame.nats[3] > 5.0
    assert blame.usual[3] < 0.1
    assert np.isnan(blame.deviation[3])


def test_the_category_that_the_numbers_contradict_is_to_blame():
    blamed, blame = blame_of_late([5.0, 0.0, BATCH, MOVED])  # all but the service is of a slow one
    assert blamed == [2] and blame.expected[2] == SLOW


@pytest.mark.parametrize("alarm_rate", [0.01, 0.001])
@pytest.mark.parametrize("draw", ["normal", "standard_exponential", "standard_cauchy"])
def test_a_category_that_never_came_alarms_among_many_numbers(alarm_rate, draw):
    rng = np.random.default_rng(0)
    rows = np.column_stack([getattr(rng, draw)(size=(N, 12)), rng.integers(4, size=N)])
    rows[5000] = [*np.zeros(12), FAILED]
    block = StreamScorer(OSLRAU(), alarm_rate=alarm_rate, n_categories=1).process(rows)
    assert blame_of(block, 5000)[0] == [12]


def test_categories_that_come_once_do_not_alarm_where_many_do():
    rng = np.random.default_rng(0)
    users = np.where(rng.random(N) < 0.05, 1000 + np.arange(N), rng.integers(50, size=N))
    rows = np.column_stack([rng.normal(size=(N, 3)), users])
    block = StreamScorer(OSLRAU(), alarm_rate=0.01, n_categories=1).process(rows)
    late = np.arange(N) >= 1000
    assert block.is_anomaly[late & (users >= 1000)].mean() < 0.05


def test_alarms_come_at_their_rate_in_categories_and_numbers():
    rows = requests(3, 60_000)
    block = StreamScorer(OSLRAU(), n_categories=2).process(rows)
    for rate in (0.01, 0.001):
        assert (block.p_value[1000:] <= rate).mean() <= 1.2 * rate


def test_of_categories_nothing_is_forecast():
    forecast = StreamScorer(OSLRAU(), n_categories=2, forecasting=True).process(requests()).forecast
    assert np.isfinite(forecast.expected[16:, :2]).all()
    assert np.isnan(forecast.expected[:, 2:]).all()


@given(st.integers(0, 10**6))
@settings(max_examples=examples(10), deadline=None)
def test_the_most_frequent_values_have_slots(seed):
    rng, values = np.random.default_rng(seed), Values(8)
    column = np.where(rng.random(20_000) < 0.5, rng.integers(10, size=20_000), rng.random(20_000))
    batch = np.full((256, 8), np.nan)
    for start in range(0, len(column), 256):
        part = column[start : start + 256]
        batch[: len(part), 3] = part
        values.learn(batch[: len(part)])
    held = values.codes[values.field == 3]
    assert set(range(10)) <= set(held[~np.isnan(held)].tolist())
    assert len(held) <= values.most + 1
    slots = values.slots(np.array([[np.nan] * 3 + [4.0] + [np.nan] * 4]))
    assert values.codes[slots[0, 3]] == 4.0
    assert (np.delete(slots[0], 3) == MISSING).all()


def test_with_a_memory_what_no_longer_comes_becomes_unlikely():
    old = np.column_stack([np.zeros(4000), np.zeros(4000)])
    new = np.column_stack([np.zeros(4000), np.ones(4000)])
    stream, usual = np.concatenate([old, new]), np.array([[0.0, 0.0]])
    kept, forgot = (learned_by(Categories(1), stream, memory=memory) for memory in (None, 500.0))
    assert np.exp(kept.take(usual).log_probability[0]) == pytest.approx(0.5, abs=0.01)
    assert np.exp(forgot.take(usual).log_probability[0]) < 0.01


def test_categories_alone_are_as_beside_a_number_that_is_always_missing():
    alone, beside = requests(n=2000)[:, 2:], requests(n=2000)
    beside[:, :2] = np.nan
    of_alone, of_beside = (
        StreamScorer(OSLRAU(), n_categories=2, alarm_rate=0.01).process(rows)
        for rows in (alone, beside)
    )
    np.testing.assert_allclose(of_alone.log_likelihood, of_beside.log_likelihood, atol=1e-9)
    np.testing.assert_array_equal(of_alone.is_anomaly, of_beside.is_anomaly)
    np.testing.assert_array_equal(of_alone.blame.expected, of_beside.blame.expected[:, 2:])


def test_a_record_whose_numbers_are_all_missing_has_the_likelihood_of_its_categories():
    rows = requests()
    rows[5000, :2] = np.nan
    scorer = StreamScorer(OSLRAU(), n_categories=2)
    scorer.process(rows[:4992])
    block = scorer.process(rows[4992:])
    layer = learned_by(Categories(2), rows[:4992])  # boundaries differ, counts do not
    expected = layer.take(rows[[5000]]).log_probability[0]
    assert block.log_likelihood[8] == pytest.approx(expected, abs=0.05)


def test_huge_numbers_are_learned_as_smaller_ones_and_restored():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.choice([-1e200, 1e200], 300), rng.integers(3, size=300)])
    density = CategoricalDensity(OSLRAU()).partial_fit(rows, batch_size=100)
    restored = CategoricalDensity.from_bytes(density.to_bytes())
    assert np.isfinite(restored.score_samples([[1e150, 0.0]])).all()


def test_what_is_left_of_huge_numbers_after_an_effect_is_no_larger():
    rng, n = np.random.default_rng(3), 1200
    one, other = rng.integers(2, size=(2, n))
    x = np.where(one == 0, 1.0 + 1e-3 * rng.normal(size=n), rng.choice([-1, 1], size=n))
    x = 1e150 * np.where(rng.random(n) < 0.1, -x, x)
    scorer = StreamScorer(OSLRAU(), n_categories=2)
    for rows in np.split(np.column_stack([x, one, other]), 60):
        scorer.process(rows)
        scorer = StreamScorer.from_bytes(scorer.to_bytes())


@functools.cache
def taught(kind=OSLRAU):
    return CategoricalDensity(kind(), n_categories=2).partial_fit(requests(), batch_size=256)


def test_missing_fields_are_filled_given_the_others():
    filled = taught().impute([[np.nan, 0.0, QUICK, OK], [9.0, 0.0, np.nan, np.nan]])
    assert filled[0, 0] == pytest.approx(1.0, rel=0.05)
    assert filled[1, 2:].tolist() == [BATCH, OK]


def test_samples_have_the_shares_and_the_relations_of_the_stream(kind):
    rows = taught(kind).sample(4000, random_state=0)
    assert rows.shape == (4000, 4)
    for service, moved in ((SLOW, 0.5), (QUICK, 0.0), (BATCH, 0.0)):
        of = rows[rows[:, 2] == service]
        assert len(of) / 4000 == pytest.approx(SHARES[service], abs=0.03)
        assert of[:, 0].mean() == pytest.approx(LEVELS[service], rel=0.06)
        assert (of[:, 3] == MOVED).mean() == pytest.approx(moved, abs=0.06)


def test_samples_hold_what_is_given():
    given = [np.nan, 1.5, np.nan, OK]
    rows = taught().sample(3000, given=given, random_state=0)
    assert (rows[:, [1, 3]] == [1.5, OK]).all()
    share = SHARES * [0.499, 0.998, 0.998]
    found = np.bincount(rows[:, 2].astype(int)) / 3000
    np.testing.assert_allclose(found, share / share.sum(), atol=0.04)


def test_a_service_is_drawn_by_its_latency():
    rows = taught().sample(200, given=[9.0, np.nan, np.nan, np.nan], random_state=0)
    assert (rows[:, 2] == BATCH).all()


def test_a_probability_that_rounding_brings_above_one_counts_as_one():
    categories = Categories(1)
    categories.take(np.zeros((300, 1)))
    categories.end_batch(None, learning=True)
    counts = categories.counts
    above = np.full_like(counts._tables.probability, 1.0 + 1e-15)
    counts._tables = counts._tables._replace(probability=above)
    assert (categories.average(np.zeros((1, 1))).of_categories <= 0.0).all()
