from __future__ import annotations

import numpy as np
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from faust_oslrau.app.histogram import RowHistogram

_BOUNDS = (0.5, 1.0, 2.0)


def _lines(registry):
    text = generate_latest(registry).decode()
    return {line for line in text.splitlines() if "_created" not in line and line[0] != "#"}


def test_many_values_at_once_count_like_one_by_one():
    values = np.array([0.1, 0.5, 0.7, 1.0, 5.0, 2.0])
    rows, single = CollectorRegistry(), CollectorRegistry()
    RowHistogram("h", "Help.", ["topic"], _BOUNDS, rows).observe(("a",), values)
    one_by_one = Histogram("h", "Help.", ["topic"], buckets=_BOUNDS, registry=single)
    for value in values:
        one_by_one.labels("a").observe(value)
    assert _lines(rows) == _lines(single)


def test_unknown_values_count_for_nothing():
    registry = CollectorRegistry()
    histogram = RowHistogram("h", "Help.", ["topic"], _BOUNDS, registry)
    histogram.observe(("a",), np.array([np.nan, 1.0]))
    assert registry.get_sample_value("h_count", {"topic": "a"}) == 1


def test_a_removed_series_is_gone():
    registry = CollectorRegistry()
    histogram = RowHistogram("h", "Help.", ["topic"], _BOUNDS, registry)
    histogram.observe(("a",), np.ones(1))
    histogram.remove(("a",))
    assert _lines(registry) == set()
