"""The promise: scores are a function of the partition's records alone."""

import numpy as np
import pytest
from streams import clusters

from faust_oslrau.learner import OSLRAU, InvalidParameterError, StreamScorer

X = clusters(11, 1500, 4, missing=0.03)


def run(rows=X, **parameters):
    scorer = StreamScorer(OSLRAU(min_count=32), **parameters)
    return scorer, scorer.process(rows)


@pytest.mark.parametrize(
    ("batch_size", "expected"),
    [(256, [16, 48, 112, 240, 496, 752, 1008, 1264]), (40, [16, 48, *range(88, 1500, 40)])],
)
def test_learning_happens_after_growing_batches_and_then_after_each_full_one(batch_size, expected):
    _, block = run(batch_size=batch_size)
    boundaries = np.flatnonzero(np.diff(block.n_learned)) + 1
    assert boundaries.tolist() == expected
    assert block.n_learned[boundaries].tolist() == expected
    assert block.learned == expected[-1]


def test_without_a_model_nothing_is_scored_and_the_state_goes_on():
    scorer = StreamScorer(OSLRAU(), learning=False)
    block = scorer.process(X)
    assert np.isnan(block.log_likelihood).all() and not block.is_anomaly.any()
    restored = StreamScorer.from_bytes(scorer.to_bytes())
    assert np.isnan(restored.process(X).p_value).all() and restored.n_records == 2 * len(X)


@pytest.mark.parametrize("of", [None, np.arange(len(X)) % 30], ids=["plain", "entities"])
def test_a_record_is_scored_before_the_model_and_its_entity_know_it(of):
    rows, changed = X.copy(), X.copy()
    changed[700] *= 50
    before, after = (
        StreamScorer(OSLRAU(min_count=32), max_entities=None if of is None else 40)
        .process(each, of).log_likelihood[:752]
        for each in (rows, changed)
    )  # fmt: skip
    is_later = np.zeros(752, bool) if of is None else of[:752] == of[700]
    is_later[:701] = False
    same = ~is_later & (np.arange(752) != 700)
    assert before[same].tobytes() == after[same].tobytes()
    assert after[700] < before[700] and (before[is_later] != after[is_later]).all()


def test_an_anomaly_among_the_first_records_does_not_hide_later_ones():
    rows = clusters(13, 2000, 4)
    rows[[100, 1500]] += 1e6
    _, block = run(rows=rows, alarm_rate=0.01)
    assert block.is_anomaly[1500]


def test_another_alarm_rate_changes_nothing_but_which_records_alarm():
    strict, loose = (StreamScorer(OSLRAU(), alarm_rate=rate) for rate in (0.001, 0.05))
    scorer = StreamScorer.from_bytes(strict.to_bytes())
    expected = loose.process(X[:1000]), loose.process(X[1000:])
    before = scorer.process(X[:1000])
    scorer.alarm_rate = 0.05
    after = scorer.process(X[1000:])
    for found, other in zip((before, after), expected, strict=True):
        assert found.log_likelihood.tobytes() == other.log_likelihood.tobytes()
        assert found.p_value.tobytes() == other.p_value.tobytes()
    assert after.is_anomaly.tolist() == expected[1].is_anomaly.tolist()
    assert scorer.to_bytes() == loose.to_bytes()


def test_an_alarm_rate_that_is_none_is_refused():
    scorer = StreamScorer(OSLRAU())
    with pytest.raises(InvalidParameterError, match="alarm_rate = 1"):
        scorer.alarm_rate = 1
    assert scorer.alarm_rate == 0.001


def test_a_frozen_scorer_learns_nothing():
    model = OSLRAU().partial_fit(X, batch_size=100)
    block = StreamScorer(model, learning=False).process(X)
    np.testing.assert_array_equal(block.log_likelihood, model.score_samples(X))
    assert block.learned == 0 and model.n_records_ == len(X)


def test_no_rows_give_an_empty_block():
    block = StreamScorer(OSLRAU()).process(np.empty((0, 4)))
    assert len(block.log_likelihood) == 0 and block.contributions.shape == (0, 4)


def test_the_callers_array_may_change_afterwards():
    rows = X.copy()
    scorer = StreamScorer(OSLRAU())
    scorer.process(rows[:10])
    rows[:] = 0
    again = StreamScorer(OSLRAU())
    again.process(X[:10])
    a, b = scorer.process(X[10:100]), again.process(X[10:100])
    assert a.log_likelihood.tobytes() == b.log_likelihood.tobytes()
