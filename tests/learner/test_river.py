"""The anomaly detector by River's own checks, and in its tools."""

import functools
import importlib
import math
import sys

import numpy as np
import pytest
from river import checks, evaluate, metrics, preprocessing
from streams import clusters

import faust_oslrau.learner.river as adapter
from faust_oslrau.learner import OSLRAU, EntityDensity, InvalidInputError
from faust_oslrau.learner.river import OSLRAUAnomaly

NAMES = ["a", "b", "c", "d", "e"]


def records(X):
    return [dict(zip(NAMES, row, strict=True)) for row in X.tolist()]


def labelled(n):
    """Records with their label, every 40th of them far off."""
    X = clusters(0, n, 5)
    X[39::40] *= -4
    return [(x, int(i % 40 == 39)) for i, x in enumerate(records(X))]


# The checks bring a data set, which they would download; it gives way to a stream of our own.
@pytest.mark.parametrize(
    "check", list(checks.yield_checks(OSLRAUAnomaly())), ids=lambda c: c.__name__
)
@pytest.mark.parametrize(
    "detector",
    [
        OSLRAUAnomaly(OSLRAU(min_count=8), batch_size=10),
        OSLRAUAnomaly(OSLRAU(mixtures=True)),
        OSLRAUAnomaly(entity="machine"),
        OSLRAUAnomaly(categories=["service"]),
    ],
    ids=["oslrau", "mixtures", "entities", "categories"],
)
def test_rivers_own_checks_pass(detector, check):
    if isinstance(check, functools.partial):
        check = functools.partial(check.func, dataset=labelled(320))
    check(detector.clone())


def test_scores_are_minus_the_log_density_after_mini_batches_that_double():
    X = clusters(0, 200, 5)
    detector, model = OSLRAUAnomaly(batch_size=64), OSLRAU()
    scores = []
    for x in records(X):
        scores.append(detector.score_one(x))
        detector.learn_one(x)
    assert scores[:16] == [0.0] * 16
    for start, stop, next_stop in [(0, 16, 48), (16, 48, 112), (48, 112, 176), (112, 176, 200)]:
        model.partial_fit(X[start:stop])
        found = scores[stop:next_stop]
        np.testing.assert_array_equal(found, -model.score_samples(X[stop:next_stop]))


def test_absent_none_and_nan_are_missing_and_unknown_fields_left_out():
    detector = taught(records(clusters(0, 300, 5)))
    x = records(clusters(1, 1, 5))[0]
    without = {name: x[name] for name in "abd"}
    assert detector.score_one(without) == detector.score_one(x | {"c": None, "e": math.nan})
    assert detector.score_one(x) == detector.score_one(x | {"new": 3.0, "host": "web-1"})
    assert detector.score_one({}) == pytest.approx(0)


def test_fields_named_beforehand_may_appear_late():
    stream = records(clusters(0, 600, 5))
    late = [{name: x[name] for name in "abcd"} for x in stream[:100]] + stream[100:]
    x = stream[0] | {"e": 1e3}
    named, unnamed = taught(late, fields=NAMES), taught(late)
    assert named.score_one(x) > named.score_one(stream[0]) + 10
    assert unnamed.score_one(x) == unnamed.score_one(stream[0])


def test_names_of_fields_may_be_of_mixed_types_and_records_empty():
    stream = [{0: x["a"], "0": x["b"], ("t", 1): x["c"]} for x in records(clusters(0, 300, 5))]
    detector = taught([{}, *stream, {}])
    assert detector.score_one({0: 1e4}) > detector.score_one({0: 0.0})


@pytest.mark.parametrize("value", ["12", math.inf, [1.0], 1j])
def test_what_is_no_finite_number_is_refused_and_not_kept(value):
    detector = taught(records(clusters(0, 300, 5)))
    for use in (detector.score_one, detector.learn_one, OSLRAUAnomaly().learn_one):
        with pytest.raises(InvalidInputError, match="b: expected a finite number, None or NaN"):
            use({"a": 1.0, "b": value})
    detector.learn_one({"a": 1.0, "b": True, "c": np.float32(2), "d": 3})


def test_a_pipeline_finds_the_anomalies():
    detector = preprocessing.StandardScaler() | OSLRAUAnomaly(batch_size=64)
    ranking = metrics.RollingROCAUC(window_size=1200)  # metrics.ROCAUC expects scores in [0, 1]
    assert evaluate.progressive_val_score(labelled(1200), detector, ranking).get() > 0.95


def test_the_learner_given_is_left_alone():
    given = OSLRAU(min_count=20)
    taught(records(clusters(0, 100, 5)), learner=given)
    assert given.n_records_ == 0


def test_without_river_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "river.base", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'faust-oslrau\[river\]'"):
        importlib.reload(adapter)


def taught(stream, **parameters):
    detector = OSLRAUAnomaly(**parameters)
    for x in stream:
        detector.learn_one(x)
    return detector


def test_scores_with_entities_are_those_of_the_entity_that_a_field_names():
    X, machines = clusters(0, 200, 5), [f"machine-{i % 7}" for i in range(200)]
    detector = OSLRAUAnomaly(batch_size=64, entity="machine")
    for x, machine in zip(records(X), machines, strict=True):
        detector.learn_one({**x, "machine": machine})
    density = EntityDensity()
    for at in (slice(0, 16), slice(16, 48), slice(48, 112), slice(112, 176)):
        density.partial_fit(X[at], machines[at])
    for x, row in zip(records(X[-9:]), X[-9:], strict=True):
        expected = -density.score_samples([row], ["machine-3"])[0]
        assert detector.score_one({**x, "machine": "machine-3"}) == expected
    assert detector.score_one(records(X)[-1]) == -density.score_samples(X[-1:], [None])[0]


@pytest.mark.parametrize("machine", [1.5, True, ["a"]])
def test_an_entity_that_is_none_is_refused_and_not_learned(machine):
    detector = OSLRAUAnomaly(entity="machine")
    with pytest.raises(InvalidInputError, match="entity: expected bytes, text"):
        detector.learn_one({"a": 1.0, "machine": machine})
    detector.learn_one({"machine": "nothing else"})
    for i in range(16):
        detector.learn_one({"a": float(i), "machine": i % 3})
    assert detector.score_one({"a": 3.0, "machine": 0}) != 0.0


def test_texts_are_categories_where_they_are_named():
    rng = np.random.default_rng(0)
    service = rng.choice(["web", "shop"], size=2000)
    latency = np.where(service == "web", 10.0, 100.0) * rng.normal(1.0, 0.1, size=2000)
    detector = OSLRAUAnomaly(categories=["service"], batch_size=128)
    for x in zip(service.tolist(), latency.tolist(), strict=True):
        detector.learn_one(dict(zip(("service", "latency"), x, strict=True)))
    usual = detector.score_one({"service": "shop", "latency": 100.0})
    assert detector.score_one({"service": "web", "latency": 100.0}) > usual + 10
    assert detector.score_one({"service": "new", "latency": 100.0}) > usual + 4
    unknown = detector.score_one({"service": None, "latency": 100.0})
    assert unknown == detector.score_one({"latency": 100.0}) < usual + 10
    with pytest.raises(InvalidInputError, match="service: expected a text, a whole number"):
        detector.score_one({"service": 1.5})
