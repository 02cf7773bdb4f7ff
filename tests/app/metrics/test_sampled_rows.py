"""The record of each second that stands for it in a plot."""

import numpy as np

from faust_oslrau.app.metrics.sampled_rows import SampledRows


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
