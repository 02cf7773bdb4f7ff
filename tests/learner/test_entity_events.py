"""Events of entities as a whole: new ones, and those that no other entity is like."""

import numpy as np
import pytest
from interpreter import needs_compiler

from faust_oslrau.learner import OSLRAU, StreamScorer

N, K = 9000, 60
HOT, NOISY, STILL, LATE = 3, 4, 5, 60
"""Entities that differ from all others in a level, a spread, in being constant; and a late one."""


def stream(seed=0, n=N):
    """Records of entities that differ somewhat, and of some that differ from all others."""
    rng = np.random.default_rng(seed)
    of = rng.integers(K, size=n)
    of[6000::60] = LATE
    level, spread = 3.0 * rng.normal(size=(K + 1, 3)), np.exp(0.3 * rng.normal(size=(K + 1, 3)))
    level[HOT, 0] += 40.0
    spread[NOISY, 1] *= 15.0
    rows = level[of] + spread[of] * rng.normal(size=(n, 3))
    rows[of == STILL, 2] = 1.0
    return of, rows


OF, ROWS = stream()
KEYS = [b"machine-%d-%s" % (at, b"x" * 40 * (at % 2)) for at in OF]
NAMES = {int(at): key.decode() for at, key in zip(OF, KEYS, strict=True)}


PARAMETERS = {"max_entities": 100, "entity_events": ["new", "unusual"]}


@pytest.fixture(scope="module")
def whole():
    """A scorer that has seen the stream, and the events that it told of."""
    scorer = StreamScorer(OSLRAU(min_count=32), **PARAMETERS)
    return scorer, scorer.process(ROWS, KEYS).entity_events


@needs_compiler("long streams")
def test_entities_that_differ_from_all_others_are_told_with_what_differs(whole):
    told = {event.entity: event for event in whole[1] if event.state == "unusual"}
    assert told.keys() == {NAMES[HOT], NAMES[NOISY], NAMES[STILL]}
    for entity, name, column in ((HOT, "level", 0), (NOISY, "spread", 1), (STILL, "spread", 2)):
        event = told[NAMES[entity]]
        first = event.aspects[0]
        assert (first.name, first.column) == (name, column) and event.p_value <= 0.001
    own, others = ROWS[OF == HOT, 0], np.median(ROWS[:, 0])
    first = told[NAMES[HOT]].aspects[0]
    assert first.value == pytest.approx(own.mean(), abs=1.0)
    assert first.usual == pytest.approx(others, abs=3.0) and first.deviations > 5.0
    assert told[NAMES[STILL]].aspects[0].deviations < 0.0


@needs_compiler("long streams")
def test_an_entity_that_is_new_is_told_at_its_first_record(whole):
    new = [event for event in whole[1] if event.state == "new"]
    assert [(event.row, event.entity) for event in new] == [(6000, NAMES[LATE])]
    assert np.isnan(new[0].p_value) and new[0].aspects == ()


@needs_compiler("long streams")
def test_an_entity_that_changes_back_is_usual_again():
    rng = np.random.default_rng(3)
    of = rng.integers(24, size=20_000)
    spread = np.exp(0.7 * rng.normal(size=(24, 2)))
    rows = spread[of] * rng.normal(size=(len(of), 2)) + rng.normal(size=(24, 2))[of]
    rows[(of == 7) & (np.arange(len(of)) < 5000), 0] += 30.0
    scorer = StreamScorer(OSLRAU(min_count=32), max_entities=24, entity_events=["unusual"])
    events = scorer.process(rows, [b"%d" % at for at in of]).entity_events
    assert [(event.entity, event.state) for event in events] == [("7", "unusual"), ("7", "usual")]
    assert events[1].p_value > 0.01 and events[1].aspects == ()


@needs_compiler("long streams")
def test_entities_that_are_alike_are_hardly_ever_unusual():
    rng = np.random.default_rng(4)
    of = rng.integers(300, size=30_000)
    rows = rng.standard_t(5, size=(30_000, 4)) + (rng.gamma(1.0, 3.0, (300, 4)))[of]
    scorer = StreamScorer(OSLRAU(), max_entities=300, entity_events=["unusual"])
    events = scorer.process(rows, [b"%d" % at for at in of]).entity_events
    assert len({event.entity for event in events}) <= 5


@needs_compiler("long streams")
def test_a_level_is_told_in_the_units_of_a_transformed_field():
    rows = np.exp(ROWS / 10.0)
    scorer = StreamScorer(OSLRAU(), transforms={0: "log"}, **PARAMETERS)
    (event,) = [
        event
        for event in scorer.process(rows, KEYS).entity_events
        if event.entity == NAMES[HOT] and event.state == "unusual"
    ]
    first = event.aspects[0]
    assert first.name == "level" and first.column == 0
    assert first.value == pytest.approx(np.exp(np.log(rows[OF == HOT, 0]).mean()), rel=0.1)


@needs_compiler("long streams")
def test_a_profile_has_what_is_usual_for_the_entity_and_for_all(whole):
    scorer = whole[0]
    found, own = scorer.entity_profile(NAMES[HOT]), ROWS[OF == HOT]
    np.testing.assert_allclose(found.level, own.mean(axis=0), atol=1.5)
    np.testing.assert_allclose(found.spread, own.std(axis=0), rtol=0.5)
    np.testing.assert_allclose(found.expected, found.level, atol=1.5)
    assert (found.usual_level[0] < 10.0) and found.p_value < 0.001
    assert (found.aspects[0].name, found.aspects[0].column) == ("level", 0)
    usual = scorer.entity_profile(NAMES[0])
    assert usual.p_value > 0.01 and len(ROWS[OF == 0]) == pytest.approx(usual.n_values[0], rel=0.1)
    assert scorer.entity_profile("unknown") is None
    assert StreamScorer(OSLRAU()).entity_profile(b"a") is None
