from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from faust_oslrau.app.metrics import Metrics, NetworkSize
from faust_oslrau.app.partition import ProcessedBlock
from faust_oslrau.topics import OutMessage

_LABELS = {"topic": "features", "partition": "1"}


def _block(scored=0, rejected=0, anomalous=0, log_likelihood=()):
    message = OutMessage(0, None, b"", None)
    return ProcessedBlock(
        scores=[message] * scored,
        anomalies=[message] * anomalous,
        dead_letters=[message] * rejected,
        reasons=Counter(not_json=rejected),
        log_likelihood=np.array(log_likelihood, dtype=np.float64),
        learned=scored,
        seconds={"decode": 0.1, "score": 0.2, "learn": 0.3, "emit": 0.4},
    )


@pytest.fixture
def registry():
    return CollectorRegistry()


@pytest.fixture
def partition(registry):
    return Metrics(registry).of_partition("features", 1)


@pytest.fixture
def value(registry):
    return lambda name, **labels: registry.get_sample_value(f"oslrau_{name}", _LABELS | labels)


def test_rows_are_counted_by_outcome(partition, value):
    partition.count_emitted(_block(scored=7, rejected=2, anomalous=1), np.full(7, 0.01))
    partition.count_replayed(_block(scored=4, rejected=1))
    assert value("records_total", outcome="scored") == 7
    assert value("records_total", outcome="rejected") == 2
    assert value("records_total", outcome="replayed") == 5
    assert value("dead_letters_total", reason="not_json") == 2
    assert value("anomalies_total") == 1
    assert value("learned_records_total") == 11
    assert value("end_to_end_seconds_count") == 7
    assert value("stage_seconds_sum", stage="learn") == pytest.approx(0.6)


def test_outcomes_are_there_before_the_first_record(partition, value):
    assert value("records_total", outcome="rejected") == 0


def test_the_mean_log_likelihood_follows_recent_records(partition, value):
    partition.count_emitted(_block(log_likelihood=[np.nan]), np.empty(0))
    assert value("log_likelihood_mean") is None
    partition.count_emitted(_block(log_likelihood=[-4.0, np.nan, -2.0]), np.empty(0))
    assert value("log_likelihood_mean") == -3
    partition.count_emitted(_block(log_likelihood=[10.0] * 10_000), np.empty(0))
    assert value("log_likelihood_mean") == pytest.approx(10, abs=0.01)


def test_structure_changes_are_counted_once(partition, value):
    size = {"nodes": {"leaf": 2}, "edges": 2, "parameters": 4, "depth": 2}
    for mixtures in (3, 3, 5):
        partition.set_network(NetworkSize(**size, structure_changes={"mixture": mixtures}))
    assert value("structure_changes_total", kind="mixture") == 5
    assert value("network_nodes", kind="leaf") == 2


def test_a_partition_that_moved_away_leaves_no_series(partition, registry):
    partition.count_emitted(_block(scored=1, rejected=1, log_likelihood=[1.0]), np.ones(1))
    partition.set_lag(3)
    partition.count_missing(2)
    partition.set_network(NetworkSize({"leaf": 1}, 1, 1, 1, {"mixture": 1}))
    assert b'partition="1"' in generate_latest(registry)
    partition.remove()
    assert b'partition="1"' not in generate_latest(registry)
