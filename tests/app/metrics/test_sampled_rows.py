"""The record of each second that stands for it in a plot."""

import numpy as np

from faust_oslrau.app.metrics.sampled_rows import SampledRows
from faust_oslrau.learner import Forecast


def _add(rows, time, values, p_values, *, has_anomalies=False):
    matrix = np.array(values, float)[:, None]
    rows.add(time, matrix, np.array(p_values, float), has_anomalies=has_anomalies)


def test_of_wide_records_fewer_seconds_are_kept():
    narrow, wide = SampledRows(300), SampledRows(300)
    for time in range(400):
        _add(narrow, time, [time], [0.5])
        wide.add(time, np.zeros((1, 1000)), np.array([0.5]), has_anomalies=False)
    assert len(list(narrow.between(0, 1000))) == 300
    assert len(list(wide.between(0, 1000))) == 65


def test_a_record_comes_with_the_band_in_which_it_was_expected():
    rows, part = SampledRows(300), np.arange(6.0).reshape(3, 2)
    band = Forecast(part, part - 1, part + 1)
    rows.add(1, np.zeros((3, 2)), np.array([0.5, 1e-6, 0.5]), forecast=band, has_anomalies=True)
    (row,) = rows.between(0, 10)
    assert row.band.tolist() == [[1, 2], [3, 4]]
    wide = Forecast(*np.zeros((3, 1, 1000)))
    for time in range(2, 100):
        rows.add(time, np.zeros((1, 1000)), np.array([0.5]), forecast=wide, has_anomalies=False)
    assert len(list(rows.between(0, 1000))) == 21  # bands take room, too
