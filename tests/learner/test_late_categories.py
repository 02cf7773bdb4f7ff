"""Categories that come late: what is said until then, and how numbers come to depend on them."""

import numpy as np
import pytest
from test_late_fields import LAYERS, START, assert_may_be_cut_anywhere, processed

from faust_oslrau.learner import OSLRAU, StateError, StreamScorer
from faust_oslrau.learner.categories.layer import Categories
from faust_oslrau.learner.categories.rows import BESIDE
from faust_oslrau.learner.state import pack, unpack
from faust_oslrau.learner.stream.late import ENOUGH

FAR = 5.0
RATE = 0.01
FIELDS = ["a", "b", "c", "zone", "service"]

of_layers = pytest.mark.parametrize("layers", LAYERS.values(), ids=LAYERS)
by_machine = pytest.mark.parametrize("is_of_machine", [False, True], ids=["", "of each machine"])


def services(rng, n, late=START, *, is_of_machine=False):
    """Rows of three numbers far apart in each of four services, and their machines.

    The last number depends on the zone instead, which is always there.
    """
    machine, zone = rng.integers(20, size=n), rng.integers(3, size=n)
    service = machine % 4 if is_of_machine else rng.integers(4, size=n)
    levels = FAR * np.random.default_rng(8).normal(size=(4, 3))
    X = levels[service] + rng.normal(size=(n, 3)) + machine[:, None]
    X[:, 2] = FAR * zone + rng.normal(size=n)
    rows = np.column_stack([X, zone, service.astype(float)])
    rows[:late, -1] = np.nan
    return rows, machine


def scorer_of(layers):
    return StreamScorer(OSLRAU(), alarm_rate=RATE, n_categories=2, **layers)


@pytest.mark.parametrize("is_of_machine", [False, True])
def test_a_missing_category_counts_as_a_usual_one(is_of_machine):
    rng, n = np.random.default_rng(0), 8000
    machine = rng.integers(40, size=n)
    of = rng.integers(10, size=(n, 2)).astype(float)
    if is_of_machine:
        of = (machine[:, None] + np.arange(2)) % 10.0
    of[rng.random((n, 2)) < 0.2] = np.nan
    scorer = StreamScorer(OSLRAU(), n_categories=2, max_entities=40)
    rows = np.column_stack([rng.normal(size=(n, 2)), of])
    p_value, lacks = scorer.process(rows, machine.tolist()).p_value[4000:], np.isnan(of).any(axis=1)
    lacking, complete = p_value[lacks[4000:]], p_value[~lacks[4000:]]
    assert abs(np.median(lacking) - np.median(complete)) < 0.1
    assert np.mean(lacking <= RATE) < 2 * RATE
    assert np.mean(complete <= RATE) < 2 * RATE


@of_layers
@by_machine
def test_a_category_that_comes_late_raises_no_alarms(layers, is_of_machine):
    n = START + ENOUGH + 2000
    rows, machine = services(np.random.default_rng(1), n, is_of_machine=is_of_machine)
    alarms = processed(scorer_of(layers), rows, machine).is_anomaly[START:]
    for some in (alarms[:1000], alarms[1000:ENOUGH], alarms[ENOUGH:]):
        assert some.mean() < 3 * RATE


def test_records_of_entities_far_apart_are_usual_once_numbers_depend_on_it():
    rng, n = np.random.default_rng(10), START + ENOUGH + 900
    machine, service = rng.integers(60, size=n), rng.integers(4, size=n)
    levels = 30.0 * rng.normal(size=60)
    X = rng.normal(size=(n, 2)) + levels[machine, None] + FAR * service[:, None]
    rows = np.column_stack([X, np.where(np.arange(n) < START, np.nan, service)])
    scorer = StreamScorer(OSLRAU(), alarm_rate=RATE, n_categories=1, max_entities=60)
    alarms = scorer.process(rows, machine.tolist()).is_anomaly
    assert scorer.dependences(["a", "b", "service"])["a"] == ["service"]
    assert alarms[START + ENOUGH :].mean() < 3 * RATE


@of_layers
def test_numbers_depend_on_it_once_there_are_enough_rows(layers):
    n = START + ENOUGH + 6 * 256
    rows, machine = services(np.random.default_rng(2), n)
    scorer, until = scorer_of(layers), START + ENOUGH - 256
    processed(scorer, rows[:until], machine[:until])
    assert scorer.dependences(FIELDS) == {"c": ["zone"]}
    processed(scorer, rows[until:], machine[until:], until)
    assert scorer.dependences(FIELDS) == {"a": ["service"], "b": ["service"], "c": ["zone"]}
    odd, own = services(np.random.default_rng(3), 60, late=0)
    odd[::2, -1] = (odd[::2, -1] + 1) % 4  # usual numbers, but for another service
    p_value = processed(scorer, odd, own, n).p_value
    assert np.median(p_value[::2]) < RATE < np.median(p_value[1::2])


@of_layers
def test_a_stream_with_a_late_category_may_be_cut_and_read_anywhere(layers):
    rows, machine = services(np.random.default_rng(4), START + ENOUGH + 600)
    assert_may_be_cut_anywhere(lambda: scorer_of(layers), rows, machine)


def test_nothing_is_learned_anew_where_no_number_depends_on_it():
    rows, _ = services(np.random.default_rng(5), START + ENOUGH + 600)
    rows[START:, -1] = np.arange(len(rows) - START) % 4
    scorer = scorer_of({})
    scorer.process(rows)
    assert scorer.learner.n_records_ > 0.9 * len(rows)
    _, arrays = unpack(scorer.to_bytes(), "StreamScorer")
    assert arrays["late_category_rows"].size == 0


def test_no_number_depends_on_a_category_that_few_records_have():
    rows, _ = services(np.random.default_rng(6), START + 2 * ENOUGH)
    rows[START:, -1] = np.where(np.arange(len(rows) - START) % 10 == 0, rows[START:, -1], np.nan)
    scorer = scorer_of({})
    block = scorer.process(rows)
    assert "service" not in scorer.dependences(FIELDS).get("a", [])
    assert block.is_anomaly[START:].mean() < 3 * RATE


def test_a_second_late_category_waits_for_rows_of_its_own():
    n = START + 2 * ENOUGH
    rows, _ = services(np.random.default_rng(7), n)
    region = np.random.default_rng(8).integers(2, size=n)
    rows[:, 1] += 2 * FAR * region
    late = np.where(np.arange(n) < START + ENOUGH // 2, np.nan, region)
    scorer, fields = StreamScorer(OSLRAU(), alarm_rate=RATE, n_categories=3), [*FIELDS, "region"]
    rows = np.column_stack([rows, late])
    early, later = np.split(rows, [START + ENOUGH + 512])
    alarms = scorer.process(early).is_anomaly[START:]
    assert scorer.dependences(fields) == {"c": ["zone"]}
    alarms = np.append(alarms, scorer.process(later).is_anomaly)
    assert scorer.dependences(fields)["b"] == ["service", "region"]
    assert alarms.mean() < 2 * RATE


def test_entities_without_room_for_counts_are_as_all_together():
    rng, categories = np.random.default_rng(9), Categories(2)
    rows = rng.integers(3, size=(300, 2)).astype(float)
    categories.take(rows, entities=(np.arange(300) % 4, np.zeros(300, np.bool_)))
    categories.end_batch(None, learning=True)
    found = categories.average(rows, entities=np.full(300, 1 << 40)).of_categories
    np.testing.assert_array_equal(found, categories.average(rows).of_categories)


def test_rows_that_are_kept_of_an_entity_that_there_is_not_are_refused():
    rows, machine = services(np.random.default_rng(10), START + 900)
    scorer = scorer_of({"max_entities": 40})
    scorer.process(rows, machine.tolist())
    values, arrays = unpack(scorer.to_bytes(), "StreamScorer")
    assert len(arrays["late_category_rows"]) > 200
    arrays["late_category_rows"][:, -BESIDE] = 20.0
    with pytest.raises(StateError):
        StreamScorer.from_bytes(pack("StreamScorer", values, arrays))
