"""Records with categories through a partition's pipeline, and on from its snapshots."""

import json
from dataclasses import replace

import numpy as np
import pytest
from as_records import as_records

from faust_oslrau.app.pipeline import PartitionPipeline, profile_data
from faust_oslrau.app.settings import Settings

SETTINGS = Settings(kinds=(("http.status", "category"),), alarm_rate=0.005)
SERVICES = ("checkout", "search", "nightly")
USUAL_LATENCY = (5.0, 1.0, 9.0)


def records(n, **changes):
    """Return records of three services, with other members of some by offset."""
    rng = np.random.default_rng(0)
    rows = []
    for offset in range(n):
        service = int(rng.choice(3, p=[0.3, 0.6, 0.1]))
        row = {
            "latency": USUAL_LATENCY[service] + rng.normal(0, 0.1),
            "size": rng.normal(),
            "service": SERVICES[service],
            "http": {"status": 200 if rng.random() < 0.99 else 301},
            "trace": f"{offset:x}-{rng.integers(10**9)}",
        }
        rows.append(row | changes.get(f"at_{offset}", {}))
    return as_records(rows, time=lambda offset: 1000 * offset)


def process(pipeline, some):
    block = pipeline.process(some)
    return [message.value for message in block.scores], [alert.value for alert in block.alerts]


ALONE = Settings(
    features=("service", "http.status"),
    kinds=(("service", "category"), ("http.status", "category")),
    alarm_rate=0.005,
    history=("10",),
    forecasts=True,
)


def test_records_may_have_categories_alone():
    stream = records(3000, at_2500={"http": {"status": 503}})
    pipeline = PartitionPipeline("features", 0, ALONE)
    scores, alerts = process(pipeline, stream)
    found = {alert["offset"]: alert for alert in map(json.loads, alerts) if "event" not in alert}
    (status,) = found[2500]["contributions"]
    assert (status["category"], status["expected_category"]) == ("503", "200")
    likelihoods = np.array([json.loads(score)["log_likelihood"] for score in scores[1000:]])
    entropy = -sum(p * np.log(p) for p in (0.3, 0.6, 0.1, 0.99, 0.01))
    assert np.mean(likelihoods) == pytest.approx(-entropy, abs=0.05)


def test_an_entity_whose_records_have_categories_has_a_profile_of_its_numbers():
    settings = replace(SETTINGS, entity="service")
    pipeline = PartitionPipeline("features", 0, settings)
    process(pipeline, records(300))
    found = profile_data(pipeline.scorer.entity_profile("search"), pipeline.fields)
    assert [field["field"] for field in found["fields"]] == ["latency", "size"]


@pytest.mark.parametrize("settings", [SETTINGS, replace(SETTINGS, history=("10", "1h")), ALONE])
def test_what_the_learner_is_given_has_names_with_which_it_is_drawn(settings):
    pipeline = PartitionPipeline("features", 0, settings)
    process(pipeline, records(300))
    drawn = pipeline.learner.outline(pipeline.learned_names)
    assert drawn["fields"] == pipeline.learned_names
    numbers = [name for name in pipeline.learned_names if "mean of" not in name]
    assert numbers == (list(pipeline.numbers) or ["no number"])


def test_forgotten_texts_change_no_message(monkeypatch):
    stream = records(2500, at_2400={"http": {"status": 503}})
    whole = process(PartitionPipeline("features", 0, SETTINGS), stream)
    monkeypatch.setattr("faust_oslrau.app.pipeline.pipeline._MOST_TEXTS", 10)
    pipeline, scores, alerts = PartitionPipeline("features", 0, SETTINGS), [], []
    for start in range(0, len(stream), 100):
        found = process(pipeline, stream[start : start + 100])
        scores, alerts = scores + found[0], alerts + found[1]
    assert (scores, alerts) == whole
