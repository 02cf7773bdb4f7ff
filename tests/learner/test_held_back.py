"""A fault is scored and not learned, so that the next one is found; what persists is learned."""

import numpy as np
import pytest
from interpreter import needs_compiler
from streams import clusters

from faust_oslrau.learner import OSLRAU, StreamScorer

D = 4
CLEAN = clusters(41, 16_000, D)


def run(rows, kind=OSLRAU, **parameters):
    scorer = StreamScorer(kind(), **parameters)
    return scorer, scorer.process(rows)


def test_of_a_stream_without_faults_hardly_a_record_is_held_back(kind):
    scorer, block = run(CLEAN, kind)
    assert block.held_back <= 3
    at_boundaries = 240 + (len(CLEAN) - 240) // 256 * 256
    assert scorer.learner.n_records_ == block.learned == at_boundaries - block.held_back


@needs_compiler("32,000 records")
def test_a_burst_is_flagged_and_does_not_spoil_the_model(kind):
    rng, rows, bad = np.random.default_rng(42), CLEAN.copy(), np.zeros(len(CLEAN), bool)
    bad[6000:9000] = rng.random(3000) < 0.05
    rows[bad] += rng.normal(scale=60.0, size=(bad.sum(), D))
    _, clean = run(CLEAN, kind)
    scorer, block = run(rows, kind)
    assert block.is_anomaly[bad].mean() > 0.9
    assert block.held_back > 0.8 * bad.sum()
    after = slice(10_000, None)
    assert block.log_likelihood[after].mean() > clean.log_likelihood[after].mean() - 0.2
    again = StreamScorer.from_bytes(scorer.to_bytes()).process(rows[bad][-20:])
    assert again.is_anomaly.mean() > 0.9  # a late one of its kind is as unusual as ever


@pytest.mark.parametrize("history", [None, ("10",)])
def test_the_first_record_of_each_burst_is_an_anomaly(history):
    rows, starts = CLEAN[:8000].copy(), (5000, 6000, 7000)
    for start in starts:
        rows[start : start + 60] += 60.0
    _, block = run(rows, history=history)
    assert block.is_anomaly[list(starts)].all()


@needs_compiler("16,000 records")
def test_a_fault_that_comes_again_and_again_stays_found(kind):
    rows, spikes = CLEAN.copy(), np.arange(3000, len(CLEAN), 500)
    rows[spikes, 1] += 60.0
    _, block = run(rows, kind)
    assert block.is_anomaly[spikes].all()


def test_a_fault_of_another_kind_is_found_soon_after_one(kind):
    rows = CLEAN[:6400].copy()
    rows[6000:6200] = rows[6000]  # stuck
    rows[6300:6310] += 60.0
    _, block = run(rows, kind)
    assert block.is_anomaly[6300:6310].all()


@pytest.mark.parametrize(
    ("changed", "adapt_after", "enough"),
    [(9000, 512, 512), (9000, 1500, 1500), (2000, 512, 512 / 8192 * 2133)],
)
def test_a_change_for_good_is_learned_once_enough_is_held_back(kind, changed, adapt_after, enough):
    rows = np.concatenate([CLEAN[:changed], clusters(43, 6000, D) + 80.0])
    _, block = run(rows, kind, adapt_after=adapt_after)
    assert block.is_anomaly[changed : changed + 100].all()
    assert enough <= block.held_back < enough + 256 + 100
    learned = changed + int(enough) + 256
    assert np.median(block.log_likelihood[learned:]) > -60
    assert block.is_anomaly[changed + 3000 :].mean() <= 0.01
