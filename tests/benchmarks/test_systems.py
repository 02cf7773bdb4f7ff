"""Generated streams of real systems' processes, their faults and their lasting changes."""

from itertools import pairwise

import numpy as np
import pytest

from benchmarks import systems
from benchmarks.systems import CHOICES, EXCHANGEABLE, FINAL, KINDS

N = 6_000
SYSTEMS = {**CHOICES, **FINAL, **EXCHANGEABLE}


def _stream(name, n=N, seed=0):
    return SYSTEMS[name](np.random.default_rng(seed), n)


def test_no_system_is_in_two_sets():
    assert len(SYSTEMS) == len(set(SYSTEMS.values()))


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize(
    "put", [systems.with_faults, systems.with_lone, systems.with_spikes, systems.with_aftermaths]
)
def test_faults_are_where_their_labels_are_and_few(name, put):
    x = _stream(name)
    before = x.copy()
    made = put(x, np.random.default_rng(1))
    assert np.array_equal(x, before) and np.isfinite(made.x).all()
    assert not made.label[:2_000].any() and 0 < np.mean(made.label > 0) <= 0.05
    assert set(made.label) == set(range(len(made.kinds) + 1))
    differs = (made.x != x).any(axis=1)
    assert not differs[made.label == 0].any()
    single = [k for k, kind in enumerate(made.kinds, 1) if kind in ("lone", "spike")]
    assert differs[np.isin(made.label, single)].all()
    again = put(x, np.random.default_rng(1))
    assert np.array_equal(made.x, again.x) and np.array_equal(made.label, again.label)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_has_as_many_records_as_its_kind_and_is_apart_from_others(kind):
    made = systems.with_faults(_stream("pump", 60_000), np.random.default_rng(0), [kind])
    places = [np.flatnonzero(made.label == k + 1) for k in range(len(made.kinds))]
    assert len(places) > 1 and set(made.kinds) == {kind}
    for at in places:
        assert KINDS[kind].shortest <= len(at) <= KINDS[kind].longest
        assert at[-1] - at[0] == len(at) - 1
    assert all(b[0] - a[-1] > 500 for a, b in pairwise(places))


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_change_leaves_what_was_before_and_is_for_good(name):
    for change in (systems.changes, systems.redrawn, systems.relevelled):
        made = change(SYSTEMS[name], np.random.default_rng(2), N)
        again = change(SYSTEMS[name], np.random.default_rng(2), N)
        assert made.x.shape == _stream(name).shape and np.isfinite(made.x).all()
        assert made.at == again.at and np.array_equal(made.x, again.x)
        assert 0.3 * N - 1 <= made.at <= 0.7 * N


def test_exchangeable_streams_have_the_shares_that_they_say():
    n = 100_000
    draw = {name: _stream(name, n) for name in EXCHANGEABLE}
    _, counts = np.unique(draw["status codes"], return_counts=True)
    assert np.allclose(counts / n, [0.9, 0.06, 0.03, 0.01], atol=0.003)
    assert abs(draw["sparse counts"].mean() - 0.05) < 0.003
    assert abs(draw["rare flag"].mean() - 0.02) < 0.002
    assert abs((draw["mostly zero"] == 0).mean() - 0.9) < 0.004
    assert set(draw["battery"][:, 0]) == set(range(101))
    assert np.array_equal(draw["tenths"], np.round(draw["tenths"], 1))
    assert (np.corrcoef(draw["rounded fields"].T) > 0.7).all()
