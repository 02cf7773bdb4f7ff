"""The range of each field's values."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from faust_oslrau.learner import OSLRAU, StreamScorer
from faust_oslrau.learner.scoring.ranges import Ranges
from faust_oslrau.learner.state import unpack

VALUES = st.floats(-1e300, 1e300) | st.just(np.nan)


@given(arrays(np.float64, (7, 3), elements=VALUES), st.lists(st.integers(0, 7), max_size=3))
def test_only_values_beyond_all_so_far_are_outside(rows, cuts):
    ranges = Ranges()
    assert not ranges.is_outside(rows).any()
    for some in np.split(rows, sorted(cuts)):
        ranges.update(some)
    assert not ranges.is_outside(rows).any()
    known = ~np.isnan(rows).all(axis=0)
    below = np.nextafter(np.fmin.reduce(rows), -np.inf)
    above = np.nextafter(np.fmax.reduce(rows), np.inf)
    assert (ranges.is_outside(np.array([below, above])) == known).all()


def test_anomalies_that_are_not_learned_do_not_widen_the_range():
    rows = np.random.default_rng(1).normal(size=(1400, 3))
    rows[1300, 1] = 1e6
    scorer = StreamScorer(OSLRAU())
    scorer.process(rows)
    _, arrays_ = unpack(scorer.to_bytes(), "StreamScorer")
    assert arrays_["highest"][1] < 10 and (arrays_["lowest"] < arrays_["highest"]).all()
