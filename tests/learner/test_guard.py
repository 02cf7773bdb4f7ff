"""An incident is scored and not learned; what persists is."""

import numpy as np
import pytest
from interpreter import needs_compiler
from streams import clusters

from faust_oslrau.learner import OSLRAU, InvalidParameterError, StackedSPN, StreamScorer
from faust_oslrau.learner.scoring.guard import REGIME, Guard, fence

D = 4
CLEAN = clusters(41, 16_000, D)


# Wide leaves bound what a record loses; had it been learned, its log-density would be some -27.
UNLIKELY = {OSLRAU: -100, StackedSPN: -30}


@pytest.fixture(params=[OSLRAU, pytest.param(StackedSPN, marks=needs_compiler("long streams"))])
def kind(request):
    return request.param


def run(rows, kind=OSLRAU):
    scorer = StreamScorer(kind())
    return scorer, scorer.process(rows)


def with_burst(share, start=6000, stop=9000):
    rng = np.random.default_rng(42)
    rows, bad = CLEAN.copy(), np.zeros(len(CLEAN), bool)
    bad[start:stop] = rng.random(stop - start) < share
    rows[bad] += rng.normal(scale=60.0, size=(bad.sum(), D))
    return rows, bad


def test_a_clean_stream_is_learned_whole(kind):
    scorer, block = run(CLEAN, kind)
    assert block.held_back == 0
    assert scorer.learner.n_records_ == block.learned == 240 + (len(CLEAN) - 240) // 256 * 256


@needs_compiler("32,000 records")
def test_a_burst_is_flagged_and_does_not_poison_the_model(kind):
    rows, bad = with_burst(0.05)
    _, clean = run(CLEAN, kind)
    scorer, block = run(rows, kind)
    assert block.is_anomaly[bad].mean() > 0.9
    assert block.held_back > 0.8 * bad.sum()
    after = slice(10_000, None)
    assert block.log_likelihood[after].mean() > clean.log_likelihood[after].mean() - 0.2
    # a late one of its kind is as unlikely as ever
    again = StreamScorer.from_bytes(scorer.to_bytes(), kind).process(rows[bad][-20:])
    assert np.median(again.log_likelihood) < np.median(block.log_likelihood[bad]) / 2


@pytest.mark.parametrize("history", [None, ("10",)])
def test_the_first_record_of_each_burst_is_an_anomaly(history):
    rows, starts = CLEAN[:8000].copy(), (5000, 6000, 7000)
    for start in starts:
        rows[start : start + 60] += 60.0
    block = StreamScorer(OSLRAU(), history=history).process(rows)
    assert block.is_anomaly[list(starts)].all()


def test_a_permanent_change_is_learned_within_three_batches(kind):
    rows = np.concatenate([CLEAN[:6000], clusters(43, 6000, D) + 80.0])
    _, block = run(rows, kind)
    assert block.is_anomaly[6000:6250].all()
    assert (block.log_likelihood[6768:] > -60).mean() > 0.99
    assert block.held_back == pytest.approx(REGIME, abs=256 + 16)
    assert block.is_anomaly[9000:].mean() <= 0.01


RECENT = np.sort(np.random.default_rng(0).normal(size=1000))


def fed(guard, ends, n_far, rows, room=0):
    """Part batches of 256 with some far records first, and return what was said of each."""
    score = np.where(np.arange(256) < n_far, -1e6, 0.0)
    return [guard.part(rows, score, RECENT, end, room) for end in ends]


def test_far_records_wait_for_a_regime_within_a_span_of_records():
    guard, rows = Guard(), np.random.default_rng(1).normal(size=(256, 1))
    first, second = fed(guard, (256, 512), 256, rows)
    assert not first.usual.any() and len(first.regime) == 0
    assert not second.usual.any() and len(second.regime) == 512 and len(guard.held) == 0
    fed(guard, [768], 256, rows)
    (later,) = fed(guard, [40_000], 0, rows)
    assert later.usual.all() and len(later.regime) == 0 and len(guard.held) == 0


def test_a_regime_needs_as_many_far_records_as_adapt_after_says():
    rows = np.random.default_rng(1).normal(size=(256, 1))
    found = fed(Guard(adapt_after=700), (256, 512, 768), 256, rows)
    assert [len(parted.regime) for parted in found] == [0, 0, 768]
    for wrong in (0, 8193):
        with pytest.raises(InvalidParameterError, match="adapt_after"):
            StreamScorer(OSLRAU(), adapt_after=wrong)


def test_a_few_far_scores_count_for_usual_so_that_a_stream_with_a_rare_tail_has_its_rate():
    guard, rows = Guard(), np.zeros((256, 1))
    (parted,) = fed(guard, [256], 10, rows, room=3)
    assert parted.counted[:10].tolist() == [True] * 3 + [False] * 7
    recent = np.concatenate([[-1e6, -1e6], RECENT])
    score = np.where(np.arange(256) < 10, -1e6, 0.0)
    assert guard.part(rows, score, recent, 512, 3).counted[:10].sum() == 1


def test_what_has_been_far_for_long_counts_for_usual_and_is_learned_if_it_is_a_cluster():
    rng = np.random.default_rng(2)
    ends = range(256, 20_000, 256)
    for cluster in (True, False):
        guard = Guard()
        rows = rng.normal(size=(256, 2))
        rows[:5] = rng.normal(30, 1, (5, 2)) if cluster else rng.normal(0, 60, (5, 2))
        told = fed(guard, ends, 5, rows)
        counted = [bool(parted.counted.all()) for parted in told]
        assert 10_000 < 256 * counted.index(True) < 13_000 and all(counted[counted.index(True) :])
        learned = [len(parted.regime) for parted in told]
        assert (sum(learned) == 5 * len(ends)) == cluster and (sum(learned) == 0) != cluster
        assert len(guard.held) <= 5 * 65


@needs_compiler("80,000 records")
def test_a_small_cluster_that_lasts_is_learned_and_scattered_anomalies_are_not(kind):
    rng = np.random.default_rng(3)
    odd = rng.random(40_000) < 0.03
    odd[:8000] = False
    usual = clusters(44, 40_000, D)
    for scattered in (False, True):
        rows = usual.copy()
        rows[odd] = rng.normal(80, 3, (odd.sum(), D))
        if scattered:
            rows[odd] = rng.normal(0, 80, (odd.sum(), D))
        _, block = run(rows, kind)
        late = np.arange(len(rows)) > 24_000
        assert (np.median(block.log_likelihood[late & odd]) < UNLIKELY[kind]) == scattered
        assert block.log_likelihood[late & ~odd].mean() > -10
        assert block.is_anomaly[late].mean() < 0.003  # p-values are of the stream as it is


def test_there_is_no_fence_before_there_are_quartiles():
    assert fence(np.zeros(100)) == -np.inf
    assert fence(np.sort(np.random.default_rng(1).normal(size=1000))) < -10
