"""p-values: right rates, ranks where there are enough scores, a tail where there are not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import floats, integers, lists, sampled_from
from interpreter import needs_compiler
from scipy.stats import genpareto

from faust_oslrau.learner.scoring.calibration import RECENT, Calibration, RecentScores, fit_tail
from faust_oslrau.learner.scoring.clusters import NONE, cluster_sizes, clusters_below, own_size
from faust_oslrau.learner.scoring.ordered import replace_ordered


def calibrated(scores, sequential=False):
    calibration = Calibration(sequential=sequential)
    calibration.restore(scores)
    return calibration


def prequential(scores, batch=256, sequential=False):
    """Return the p-value of each score from those before its batch."""
    calibration, p_values = Calibration(sequential=sequential), []
    for start in range(0, len(scores), batch):
        p_values.append(calibration.p_value(scores[start : start + batch]))
        calibration.update(scores[start : start + batch])
    return np.concatenate(p_values)


STREAMS = {
    "chi-square": lambda rng, n: -0.5 * rng.chisquare(4, n),
    "normal": lambda rng, n: rng.normal(-30, 5, n),
    "heavy": lambda rng, n: -rng.pareto(2.5, n),
}


@needs_compiler("400,000 scores")
@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("rate", [0.01, 0.001])
def test_the_realised_rate_is_the_nominal_one_on_a_stationary_stream(name, rate):
    scores = STREAMS[name](np.random.default_rng(1), 400_000)
    assert (prequential(scores)[RECENT:] <= rate).mean() == pytest.approx(rate, rel=0.15)


@needs_compiler("100,000 scores")
def test_atoms_alarm_at_most_at_the_nominal_rate():
    scores = np.random.default_rng(2).choice([-1.0, -2.0, -9.0], 100_000, p=[0.7, 0.28, 0.02])
    for rate in (0.05, 0.01, 0.001):
        assert (prequential(scores)[RECENT:] <= rate).mean() <= rate


def test_p_values_are_ranks_above_the_lowest_few_and_in_proportion_between_them():
    scores = np.random.default_rng(3).normal(size=1000)
    ascending = np.sort(scores)
    calibration = calibrated(scores)
    ranks = np.arange(5, 1001)
    np.testing.assert_array_equal(calibration.p_value(ascending[4:]), ranks / 1001)
    middle = (ascending[4:-1] + ascending[5:]) / 2
    np.testing.assert_allclose(calibration.p_value(middle), (ranks[:-1] + 0.5) / 1001)
    assert calibration.p_value(ascending[-1:] + 1.0) == 1.0


@pytest.mark.parametrize("n", [1, 16, 150, 5000])
def test_p_values_keep_the_order_of_the_scores_wherever_they_lie(n):
    scores = np.random.default_rng(7).normal(size=n)
    grid = np.linspace(-30.0, scores.max(), 1000)
    p_values = calibrated(scores).p_value(grid)
    falls = scores.min() - 30.0 if n == 1 else -np.inf  # one score has no spread
    assert (np.diff(p_values)[grid[1:] > falls] >= 0).all()
    if n > 1:
        assert len(np.unique(p_values)) == len(grid)


@pytest.mark.parametrize("n", [16, 100, 190])
def test_few_scores_do_not_make_a_record_rarer_than_half_of_one_of_them(n):
    scores = np.random.default_rng(8).normal(size=n)
    assert calibrated(scores).p_value(np.array([-1e300]))[0] >= 0.5 / (n + 1)


def test_below_all_scores_p_values_fall_on_towards_zero_but_never_reach_it():
    scores = np.random.default_rng(4).normal(size=5000)
    p_values = calibrated(scores).p_value(np.linspace(scores.min(), -500.0, 1000))
    assert (np.diff(p_values) <= 0).all() and p_values[-1] > 0
    assert p_values[0] < 5 / 5001 and p_values[200] < 1e-6


def test_few_scores_do_not_tell_how_thin_their_tail_is():
    scores = np.random.default_rng(5).normal(size=8000)
    far = np.array([-12.0])
    few, many = (calibrated(scores[:n]).p_value(far)[0] for n in (240, 8000))
    assert few > 1e-6 > many > 0


def test_the_tail_finds_the_shape_it_was_drawn_from():
    excess = genpareto(0.25, scale=2.0).rvs(20_000, random_state=5)
    scores = np.sort(np.concatenate([-10.0 - excess, np.full(180_000, -10.0)]))
    tail = fit_tail(scores)
    assert tail.shape == pytest.approx(0.25, abs=0.05)
    assert tail.scale == pytest.approx(2.0, rel=0.1)
    assert tail.survival(np.array([-14.0]))[0] == pytest.approx(
        genpareto(0.25, scale=2.0).sf(4.0), rel=0.05
    )


def test_few_or_equal_scores_have_no_tail():
    assert fit_tail(np.sort(np.random.default_rng(6).normal(size=100))) is None
    assert fit_tail(np.zeros(5000)) is None
    p_values = calibrated(np.zeros(5000)).p_value(np.array([-1.0, 0.0, 1.0]))
    np.testing.assert_array_equal(p_values, [1 / 5001, 5000 / 5001, 1.0])


def test_there_is_no_p_value_before_the_first_scores():
    assert np.isnan(Calibration().p_value(np.array([1.0]))).all()


@given(lists(lists(sampled_from([-3.0, -1.0, 0.0, 0.5, 2.0]) | floats(-1e9, 1e9), max_size=30)))
def test_recent_scores_are_the_last_ones_in_order(batches):
    recent = RecentScores()
    for batch in batches:
        recent.update(np.array(batch))
        assert np.array_equal(recent.ascending, np.sort(recent.recent))


@pytest.mark.parametrize("batch", [100, 5000, 3 * RECENT])
def test_scores_beyond_the_recent_ones_are_forgotten(batch):
    scores = np.random.default_rng(3).normal(size=4 * RECENT).round(2)
    recent = RecentScores()
    for start in range(0, len(scores), batch):
        recent.update(scores[start : start + batch])
    assert np.array_equal(recent.recent, scores[-RECENT:])
    assert np.array_equal(recent.ascending, np.sort(scores[-RECENT:]))


def test_p_values_of_a_young_stream_forget_what_a_younger_model_gave():
    rng = np.random.default_rng(9)
    scores = [rng.normal(-20, 1, 1024), rng.normal(0, 1, 6144), [-8.0]]
    assert prequential(np.concatenate(scores))[-1] < 0.001


def test_while_a_stream_is_young_each_two_scores_replace_one():
    recent, scores = RecentScores(), np.arange(6 * 1024.0)
    for start in range(0, len(scores), 256):
        recent.update(scores[start : start + 256])
    assert np.array_equal(recent.recent, scores[2048:])


def test_numbers_that_are_not_there_to_be_replaced_do_no_harm():
    old, new = np.array([0.0, np.nan]), np.array([0.5, 3.0])
    assert replace_ordered(np.array([1.0, 2.0]), old, new).tolist() == [0.5, 1.0, 2.0, 3.0]


def moving(n, keep, seed=11):
    """Draw scores that follow those before them."""
    noise, scores = np.random.default_rng(seed).normal(size=n), np.zeros(n)
    for t in range(1, n):
        scores[t] = keep * scores[t - 1] + noise[t]
    return scores


@needs_compiler("100,000 scores")
@pytest.mark.parametrize("keep", [0.9, 0.97])
@pytest.mark.parametrize("sequential", [False, True])
def test_alarms_are_not_too_many_where_low_scores_come_in_clusters(keep, sequential):
    scores = moving(100_000, keep)
    p_value = prequential(scores, sequential=sequential)[RECENT:]
    assert (p_value <= 0.01).mean() == pytest.approx(0.01, rel=0.3)
    assert (p_value <= 0.001).mean() < 0.0015
    far = calibrated(scores[-RECENT:], sequential=sequential)
    assert far.p_value(np.array([-10.0 * scores.std()]))[0] < 0.001


def test_p_values_are_further_above_those_of_ranks_the_larger_clusters_are():
    p_values, sizes = [], []
    for keep in (0.0, 0.9, 0.97):
        calibration = calibrated(moving(5000, keep), sequential=True)
        lowest = calibration.ascending[:1]
        p_values.append(calibration.p_value(lowest - calibration.ascending.std())[0])
        sizes.append(calibration.clusters)
    mean, own = np.transpose(sizes)
    assert 1.0 <= mean[0] < 1.3 < mean[1] < mean[2]
    assert 1.0 <= own[0] < 1.3 < own[1] < own[2]
    assert (own >= mean)[1:].all()
    assert p_values[0] < p_values[1] < p_values[2]


def test_clusters_have_the_size_of_a_stream_where_it_is_known():
    """The largest of two neighbours in turn: each exceedance comes twice."""
    draws = -np.random.default_rng(12).pareto(2.0, 200_001)
    scores = np.minimum(draws[1:], draws[:-1])
    for values, size in ((scores, 2.0), (draws, 1.0)):
        clusters = clusters_below(values, np.quantile(values, 0.01))
        assert clusters.mean_size == pytest.approx(size, rel=0.1)
        assert clusters.own_size == pytest.approx(size, rel=0.15)


@pytest.mark.parametrize("below", [[], [3], [3, 9], [3, 4, 5, 6], [3, 4, 5, 7, 8], range(100)])
def test_clusters_have_a_size_however_few_scores_there_are(below):
    scores = np.zeros(100)
    scores[list(below)] = -1.0
    clusters = clusters_below(scores, -0.5)
    assert all(1.0 <= size <= max(len(below), 1) for size in clusters)
    assert len(below) > 2 or clusters == NONE


@given(lists(integers(1, 50), min_size=2, max_size=200), floats(0.001, 1.0))
def test_each_score_is_in_one_cluster(gaps, index):
    sizes = cluster_sizes(np.array(gaps), index)
    assert sizes.sum() == len(gaps) + 1
    assert (sizes >= 1).all()
    assert len(sizes) >= index * (len(gaps) + 1)  # more where gaps are alike


def test_the_largest_clusters_may_be_faults_and_do_not_count():
    usual = [1, 1, 2, 1]
    assert own_size(np.array([*usual, 60, 40, 50])) == own_size(np.array(usual)) == 7 / 5
    assert own_size(np.array([3, 1])) == 10 / 4  # too few to leave any out
