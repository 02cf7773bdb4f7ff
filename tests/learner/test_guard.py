"""An incident is scored and not learned; what persists is."""

import numpy as np
import pytest
from streams import clusters

from faust_oslrau.learner import OSLRAU, StreamScorer
from faust_oslrau.learner.guard import REGIME, Guard, fence

D = 4
CLEAN = clusters(41, 16_000, D)


def run(rows):
    scorer = StreamScorer(OSLRAU())
    return scorer, scorer.process(rows)


def with_burst(share, start=6000, stop=9000):
    rng = np.random.default_rng(42)
    rows, bad = CLEAN.copy(), np.zeros(len(CLEAN), bool)
    bad[start:stop] = rng.random(stop - start) < share
    rows[bad] += rng.normal(scale=60.0, size=(bad.sum(), D))
    return rows, bad


def test_a_clean_stream_is_learned_whole():
    scorer, block = run(CLEAN)
    assert block.held_back == 0
    assert scorer.learner.n_records_ == block.learned == 240 + (len(CLEAN) - 240) // 256 * 256


def test_a_burst_is_flagged_and_does_not_poison_the_model():
    rows, bad = with_burst(0.05)
    _, clean = run(CLEAN)
    scorer, block = run(rows)
    assert block.is_anomaly[bad].mean() > 0.9
    assert block.held_back > 0.8 * bad.sum()
    after = slice(10_000, None)
    assert block.log_likelihood[after].mean() > clean.log_likelihood[after].mean() - 0.2
    # a late one of its kind is as unlikely as ever
    again = StreamScorer.from_bytes(scorer.to_bytes()).process(rows[bad][-20:])
    assert np.median(again.log_likelihood) < np.median(block.log_likelihood[bad]) / 2


def test_a_permanent_change_is_learned_within_three_batches():
    rows = np.concatenate([CLEAN[:6000], clusters(43, 6000, D) + 80.0])
    _, block = run(rows)
    assert block.is_anomaly[6000:6250].all()
    assert (block.log_likelihood[6768:] > -60).mean() > 0.99
    assert block.held_back == pytest.approx(REGIME, abs=256 + 16)
    assert not block.is_anomaly[9000:].mean() > 0.01


def test_far_records_wait_for_a_regime_within_a_span_of_records():
    guard, recent = Guard(), np.sort(np.random.default_rng(0).normal(size=1000))
    rows, far, usual = np.zeros((200, 1)), np.full(200, -1e6), np.zeros(200)
    for end in (200, 400):
        kept, regime = guard.filter(rows, far, recent, end)
        assert not kept.any() and len(regime) == 0
    kept, regime = guard.filter(rows, far, recent, 600)
    assert not kept.any() and len(regime) == 600 and len(guard.held) == 0
    guard.filter(rows, far, recent, 800)
    kept, regime = guard.filter(rows, usual, recent, 20_000)
    assert kept.all() and len(regime) == 0 and len(guard.held) == 0


def test_there_is_no_fence_before_there_are_quartiles():
    assert fence(np.zeros(100)) == -np.inf
    assert fence(np.sort(np.random.default_rng(1).normal(size=1000))) < -10
