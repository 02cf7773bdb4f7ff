import math
import time
from collections import Counter

import numpy as np
import pytest
from as_records import as_records
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from faust_oslrau.app.metrics import Metrics, NetworkSize
from faust_oslrau.app.metrics.distribution import Distribution
from faust_oslrau.app.metrics.partition import BlamedFields
from faust_oslrau.app.partitions.held_partition import ages
from faust_oslrau.app.pipeline import ExpectedField, PartitionPipeline, ProcessedBlock
from faust_oslrau.app.settings import LearnerSettings, Settings
from faust_oslrau.learner import Incident
from faust_oslrau.learner.scoring.evidence import Place
from faust_oslrau.topics import OutMessage

_LABELS = {"topic": "features", "partition": "1"}


def _block(scored=0, rejected=0, anomalous=0, log_likelihood=(), **changed):
    message = OutMessage(0, None, b"", None)
    values = {
        "scores": [message] * scored, "anomalies": [message] * anomalous,
        "dead_letters": [message] * rejected, "reasons": Counter(not_json=rejected),
        "timestamps": np.empty(0), "log_likelihood": np.array(log_likelihood, dtype=np.float64),
        "p_value": np.empty(0), "blamed": Counter(), "learned": scored, "skipped": Counter(),
        "seconds": {"decode": 0.1, "score": 0.2, "learn": 0.3, "emit": 0.4},
    }  # fmt: skip
    return ProcessedBlock(**{**values, **changed})


@pytest.fixture
def registry():
    return CollectorRegistry()


@pytest.fixture
def metrics(registry):
    return Metrics(registry)


@pytest.fixture
def partition(metrics):
    return metrics.of_partition("features", 1)


@pytest.fixture
def value(registry):
    return lambda name, **labels: registry.get_sample_value(f"oslrau_{name}", _LABELS | labels)


def test_rows_are_counted_by_outcome(partition, value):
    block = _block(scored=7, rejected=2, anomalous=1, wrong_types=Counter(a=3, b=1))
    partition.count_emitted(block, np.full(7, 0.01))
    assert value("records_total", outcome="replayed") == 0  # a known label is there at once
    partition.count_replayed(_block(scored=4, rejected=1))
    assert value("records_total", outcome="scored") == 7
    assert value("records_total", outcome="rejected") == 2
    assert value("records_total", outcome="replayed") == 5
    assert value("dead_letters_total", reason="not_json") == 2
    assert value("anomalies_total") == 1
    assert value("wrong_types_total") == 4
    assert value("learned_records_total") == 11
    assert value("end_to_end_seconds_count") == 7
    assert value("stage_seconds_sum", stage="learn") == pytest.approx(0.6)


def test_a_record_from_a_clock_that_is_ahead_is_new(partition, value):
    now = 1000 * time.time()
    block = _block(scored=3, timestamps=np.array([now - 5000, now + 1e7, np.nan]))
    partition.count_emitted(block, ages(block))
    assert value("end_to_end_seconds_count") == 2
    assert 5 <= value("end_to_end_seconds_sum") < 600


def _opened_before(seconds, level):
    place = Place(number=900, offset=900, timestamp=int(1000 * (time.time() - seconds)))
    return Incident(place, place, place, place, 1e-9, 1, 150.0, level)


def test_incidents_are_counted_by_severity_and_the_open_ones_are_shown(partition, value):
    partition.count_replayed(_block(reached=Counter(minor=1)))  # counted before a restart
    incidents = [_opened_before(60, 1), _opened_before(30, 0), _opened_before(20, 0)]
    reached = Counter(minor=2, major=1)
    partition.count_emitted(_block(reached=reached, open_incidents=incidents), np.empty(0))
    assert value("incidents_total", severity="minor") == 2
    assert value("incidents_total", severity="major") == 1
    assert value("incidents_total", severity="critical") == 0
    assert value("incidents_open", severity="major") == 1
    assert value("incidents_open", severity="minor") == 2
    assert 59 < value("incident_open_seconds") < 600  # the oldest of them
    partition.count_emitted(_block(), np.empty(0))
    assert value("incidents_open", severity="major") == 0
    assert value("incident_open_seconds") is None


def test_the_last_known_values_of_fields_are_shown_with_what_was_expected(partition, value):
    a, b = ExpectedField(1.0, 2.0, 0.5, 3.5), ExpectedField(math.nan, 5.0, 4.0, 6.0)
    partition.count_emitted(_block(expected_fields={"a": a, "b": b}), np.empty(0))
    partition.count_emitted(_block(expected_fields={}), np.empty(0))  # no record was valid
    names = ("field_value", "field_expected", "field_expected_low", "field_expected_high")
    assert [value(name, field="a") for name in names] == list(a)
    assert [value(name, field="b") for name in names] == [None, 5.0, 4.0, 6.0]


@pytest.mark.parametrize("centre", [-40_000.0, 0.001])
def test_quantiles_are_exact_wherever_the_stream_lies_and_forget(partition, value, centre):
    recent = centre + np.random.default_rng(0).permutation(np.linspace(-1, 1, 2001))
    for start in range(0, 2001, 300):  # comes in pieces
        partition.count_emitted(_block(log_likelihood=recent[start : start + 300]), np.empty(0))
    assert value("log_likelihood_quantile", quantile="0.5") == pytest.approx(centre, abs=1e-6)
    low = value("log_likelihood_quantile", quantile="0.05")
    assert low == pytest.approx(centre - 0.9, abs=1e-6)
    partition.count_emitted(_block(log_likelihood=np.full(3000, 7.0)), np.empty(0))
    assert value("log_likelihood_quantile", quantile="0.01") == 7


def test_log_likelihoods_of_a_model_that_gave_way_are_no_part_of_the_quantiles(partition, value):
    partition.count_emitted(_block(log_likelihood=np.full(1000, -40.0)), np.empty(0))
    partition.begin_anew()
    partition.count_emitted(_block(log_likelihood=np.full(10, 7.0)), np.empty(0))
    assert value("log_likelihood_quantile", quantile="0.05") == 7


def test_structure_changes_are_counted_once_and_not_again_after_a_restart(partition, value):
    size = {"nodes": {"leaf": 2}, "edges": 2, "parameters": 4, "depth": 2}
    partition.set_restored_network(NetworkSize(**size, structure_changes={"mixture": 500}))
    assert value("network_parameters") == 4
    for mixtures in (503, 503, 505):
        partition.set_network(NetworkSize(**size, structure_changes={"mixture": mixtures}))
    assert value("structure_changes_total", kind="mixture") == 5
    assert value("network_nodes", kind="leaf") == 2


def test_a_partition_that_moved_away_leaves_no_series(partition, metrics, registry, value):
    partition.count_missing(3)
    partition.count_emitted(_block(scored=1, rejected=1, log_likelihood=[1.0]), np.ones(1))
    partition.observe_stage("restore", 1.0)
    other = metrics.of_partition("features", 2)
    assert b'partition="1"' in generate_latest(registry)
    metrics.retain([("features", 2)])
    partition.set_snapshot(5, 100)
    page = generate_latest(registry)
    assert b'partition="1"' not in page
    assert b'partition="2"' in page
    assert metrics.of_partition("features", 2) is other
    metrics.of_partition("features", 1)  # it comes back
    assert value("missing_offsets_total") == 0
    metrics.remove("features", 1)
    assert b'partition="1"' not in generate_latest(registry)


def test_the_settings_that_alerts_are_relative_to_are_shown(registry):
    unbounded = LearnerSettings(max_nodes=None)
    Metrics(registry, Settings(alarm_rate=0.02, snapshot_interval=7, learner=unbounded))
    expected = {"alarm_rate": 0.02, "snapshot_interval": 7, "learner.max_nodes": math.inf}
    for name, value in expected.items():
        assert registry.get_sample_value("oslrau_setting", {"name": name}) == value


def test_the_field_to_blame_is_counted_by_topic(metrics, registry):
    for number in (0, 1):
        block = _block(blamed=Counter(pressure=2, flow=1))
        metrics.of_partition("features", number).count_emitted(block, np.empty(0))
    labels = {"topic": "features", "field": "pressure"}
    assert registry.get_sample_value("oslrau_blamed_fields_total", labels) == 4


def test_an_unbounded_number_of_fields_makes_a_bounded_number_of_series():
    blamed = BlamedFields()
    for number in range(1000):
        blamed.count("features", {f"field-{number}": 1})
    assert len(blamed.counts) == 101
    assert blamed.counts["features", BlamedFields.REST] == 900
    assert blamed.counts.total() == 1000


def _records(rows):
    return as_records([{"a": a, "b": b} for a, b in rows.tolist()], 1)


def _correlated(number):
    a = np.random.default_rng(0).normal(size=number)
    return np.column_stack([a, a])


def test_a_record_far_away_is_blamed_on_its_field_and_skipped():
    rows = _correlated(1800)
    rows[1300, 1] = 1e6  # before, there are too few records to say what is far
    block = PartitionPipeline("features", 1, Settings()).process(_records(rows))
    assert block.blamed["b"] >= 1
    assert block.skipped["far"] >= 1


def test_drift_events_are_counted_and_the_statistic_is_shown(partition, value):
    event = OutMessage(5, None, b"", None)
    partition.count_emitted(_block(drift=0.7), np.empty(0))
    assert (value("drift_statistic"), value("drift_events_total")) == (0.7, 0)
    partition.count_emitted(_block(drift=0.0, events=[event]), np.empty(0))
    assert (value("drift_statistic"), value("drift_events_total")) == (0, 1)
    partition.count_replayed(_block(events=[event]))
    assert value("drift_events_total") == 1


def test_what_a_frozen_model_scores_is_skipped(partition, value):
    pipeline = PartitionPipeline("features", 1, Settings(learning=False))
    partition.count_emitted(pipeline.process(_records(_correlated(1000))), np.empty(0))
    assert value("learning_skipped_total", reason="frozen") == 1000
    assert value("learned_records_total") == 0


def test_a_distribution_counts_as_prometheus_own_histogram_does():
    bounds, values = (0.5, 1.0, 2.0), np.array([0.1, 0.5, np.nan, 0.7, 1.0, 5.0, 2.0])
    at_once, one_by_one = Distribution(bounds), Distribution(bounds)
    at_once.observe(values)
    registry = CollectorRegistry()
    expected = Histogram("h", "Help.", buckets=bounds, registry=registry)
    for known in values[~np.isnan(values)]:
        one_by_one.observe_one(known)
        expected.observe(known)
    buckets, total = at_once.cumulated()
    assert one_by_one.cumulated() == (buckets, total)
    for bound, count in buckets:
        assert registry.get_sample_value("h_bucket", {"le": bound}) == count
    assert registry.get_sample_value("h_sum") == total
