"""A p-value is a share of records, also where values repeat: alarms come at their rate."""

import numpy as np
import pytest
from interpreter import needs_compiler

from benchmarks.systems import EXCHANGEABLE
from faust_oslrau.learner import OSLRAU, StreamScorer

YOUNG = slice(1_000, 20_000)
SEEDS = 3
MOST = 1.5
"""Most alarms, as a multiple of the nominal ones."""


@needs_compiler("660,000 records")
@pytest.mark.parametrize("name", EXCHANGEABLE)
def test_young_streams_of_exchangeable_records_have_no_more_alarms_than_promised(name):
    p_values = []
    for seed in range(SEEDS):
        rows = EXCHANGEABLE[name](np.random.default_rng([34, seed]), YOUNG.stop)
        p_values.append(StreamScorer(OSLRAU()).process(rows).p_value[YOUNG])
    for rate in (0.01, 0.001):
        assert np.mean(np.concatenate(p_values) <= rate) <= MOST * rate
