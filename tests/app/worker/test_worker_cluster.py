"""Workers on a cluster of three nodes, one of which is lost."""

from __future__ import annotations

import pytest
from clean_run import assert_as_clean, rows

from faust_oslrau.app.brokers import KafkaBroker

pytestmark = pytest.mark.real_kafka


@pytest.fixture(scope="module")
def kafka(kafka_installed, tmp_path_factory):
    # A node that comes back is in service again at once.
    quick = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
    with KafkaBroker(tmp_path_factory.mktemp("kafka"), nodes=3, properties=quick) as broker:
        yield broker


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
def test_the_other_nodes_replace_a_lost_leader(
    delivery, kafka, client, settings, start_worker, topic_name
):
    client.create(topic_name, 2, replicas=3)
    client.send(topic_name, rows(30_000, 2))
    worker = start_worker(delivery=delivery, snapshot_interval=0.5).wait_records(5000)
    leader = client.leader(topic_name, 0)
    kafka.kill(leader)
    worker.wait_ready()
    worker.wait_offsets(15_000)
    assert worker.terminate() == 0
    kafka.start_node(leader)
    assert_as_clean(client, settings, delivery, 2)


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
def test_a_topic_that_takes_no_records_for_a_while_loses_none(
    delivery, kafka, client, settings, start_worker, topic_name
):
    client.create(topic_name, 2, replicas=3)
    # With one node away the broker answers each write with an error, as it may with a full disk.
    client.create(settings.scores_topic, 2, replicas=3, **{"min.insync.replicas": "3"})
    worker = start_worker(delivery=delivery).wait_ready()
    kafka.kill(2)
    client.send(topic_name, rows(2000, 2))
    worker.wait_until(lambda: "NotEnoughReplicas" in worker.log(), "refused by the topic")
    assert worker.metric("oslrau_records_total") == 0
    assert worker.get("/healthz")[0] == 200
    kafka.start_node(2)
    worker.wait_records(2000)
    assert worker.terminate() == 0
    assert_as_clean(client, settings, delivery, 2)
