"""Generated streams with anomalies among them."""

from itertools import chain

import numpy as np
import pytest

from benchmarks import contamination, families
from benchmarks.contamination import DEVELOPMENT_KINDS, HELD_OUT_KINDS, SHAPES

N = 2_000
KINDS = (*chain(*DEVELOPMENT_KINDS), *HELD_OUT_KINDS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [3, 30])
def test_anomalies_are_finite_and_unlike_the_records_they_are_made_of(kind, d):
    pool = families.loads(np.random.default_rng(0), N, d)
    rows = pool[:100].copy()
    made = kind(np.random.default_rng(1), rows, pool)
    assert made.shape == rows.shape and np.isfinite(made).all()
    assert (made != rows).any(axis=1).all() and np.array_equal(rows, pool[:100])


@pytest.mark.parametrize("part", [contamination.development, contamination.held_out])
def test_streams_have_as_many_anomalies_as_they_say(part):
    streams = list(part(N, 1))
    assert len({stream.name for stream in streams}) == len(streams)
    for stream, (d, share) in zip(streams, SHAPES * (len(streams) // len(SHAPES)), strict=True):
        assert stream.x.shape == (N, d) and np.isfinite(stream.x).all()
        assert np.count_nonzero(stream.label) == max(4, round(share * N))
        assert stream.name.endswith(f"{d} fields, {share:.1%}")
