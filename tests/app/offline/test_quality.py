"""Figures of merit, against scikit-learn and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from faust_oslrau.app.offline.quality import alarm_curve, find_faults, mean_of_best
from faust_oslrau.learner import InvalidInputError

SCORES = st.floats(allow_nan=False) | st.integers(-2, 2).map(float)  # often equal
RECORDS = st.lists(st.tuples(st.booleans(), SCORES), min_size=2)


@given(RECORDS)
def test_areas_and_precisions_are_those_of_scikit_learn(records):
    label, score = map(np.array, zip(*records, strict=True))
    curve = alarm_curve(label, score)
    finite = np.argsort(np.argsort(score))  # scikit-learn refuses infinite scores
    ranks = np.array([finite[score == each].min() for each in score])
    if 0 < label.sum() < len(label):
        assert curve.area_under_roc == pytest.approx(roc_auc_score(label, ranks), abs=1e-12)
    if label.any():
        expected = average_precision_score(label, ranks)
        assert curve.average_precision == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("label", [[], [0, 0], [1, 1]])
def test_without_both_kinds_of_records_there_is_no_area(label):
    curve = alarm_curve(label, np.arange(len(label)))
    assert np.isnan(curve.area_under_roc)
    assert np.isnan(curve.average_precision) == (not any(label))


def test_scores_that_are_no_numbers_and_other_shapes_are_refused():
    with pytest.raises(InvalidInputError, match="got NaN"):
        alarm_curve([0, 1], [0.0, np.nan])
    with pytest.raises(InvalidInputError, match=r"got \(1,\) and \(2,\)"):
        alarm_curve([0], [0.0, 1.0])
    with pytest.raises(InvalidInputError, match=r"got \(1,\) and \(2,\)"):
        find_faults([0], [0, 1])


def test_the_lowest_hundredth_is_left_out_of_the_mean_of_the_best():
    values = np.arange(200.0)[::-1]
    values[7] = -1e300
    assert mean_of_best(values) == np.sort(values)[2:].mean()
    assert mean_of_best([3.0, 5.0]) == 4.0  # of fewer than a hundred, none is left out
    assert np.isnan(mean_of_best([]))
