"""Old records and the retention of what is made of them; on a real Kafka that deletes promptly."""

import time

import pytest
from clean_run import rows, scores_of

from faust_oslrau.app.brokers import KafkaBroker

pytestmark = pytest.mark.real_kafka

_MONTH_MS = 30 * 86_400_000


@pytest.fixture(scope="module")
def prompt_kafka(kafka_installed):
    properties = {"log.retention.check.interval.ms": "200", "log.segment.delete.delay.ms": "0"}
    with KafkaBroker(properties=properties) as broker:
        yield broker


@pytest.fixture
def servers(prompt_kafka):
    return prompt_kafka.bootstrap_servers


def _a_month_old(records):
    return [(*record, time_ms - _MONTH_MS) for *record, time_ms in records]


def test_scores_of_old_records_of_a_compacted_topic_are_not_deleted(
    client, settings, start_worker, topic_name
):
    records = _a_month_old(rows(500))
    client.create(topic_name, **{"cleanup.policy": "compact"})
    client.send(topic_name, records)
    start_worker().wait_records(500).terminate()
    # What Kafka deletes in the meantime shows that it has looked at all topics since.
    canary = f"{topic_name}.canary"
    client.create(canary)
    client.send(canary, records[:1])
    deadline = time.monotonic() + 240
    while client.read(canary):
        assert time.monotonic() < deadline, "Kafka deletes nothing"
        time.sleep(0.2)
    assert len(scores_of(client, settings)[0]) == 500
