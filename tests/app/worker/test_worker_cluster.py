"""Workers on a cluster of three nodes, which are lost or restarted."""

import threading
import time

import pytest
from clean_run import assert_as_clean, rows

from faust_oslrau.app.brokers import KafkaBroker

pytestmark = pytest.mark.real_kafka

# The coordinator has part of the transactions then, of others not even the offsets.
_IN_FLIGHT_SECONDS = 0.5
# More than the session of a broker, after which another one is elected.
_ELECTION_SECONDS = 8.0


@pytest.fixture(scope="module")
def kafka(kafka_installed, tmp_path_factory):
    # A node that comes back is in service again at once, and leads again what it is to lead.
    quick = {
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        "leader.imbalance.check.interval.seconds": "1",
        "leader.imbalance.per.broker.percentage": "0",
    }
    with KafkaBroker(tmp_path_factory.mktemp("kafka"), nodes=3, properties=quick) as broker:
        yield broker


def test_the_other_nodes_replace_a_lost_leader(kafka, client, settings, start_worker, topic_name):
    client.create(topic_name, 2, replicas=3)
    client.send(topic_name, rows(30_000, 2))
    leader = client.leader(topic_name, 0)
    worker = start_worker(delivery="exactly_once", snapshot_interval=0.5)
    client.wait_messages(settings.scores_topic, 5000)
    kafka.kill(leader)
    worker.wait_ready()
    worker.wait_saved(15_000)
    assert worker.terminate() == 0
    kafka.start_node(leader)
    assert_as_clean(client, settings, 2)


def test_a_worker_reads_from_the_replica_in_its_rack_and_from_the_leader_without_it(
    kafka, client, settings, start_worker, topic_name
):
    client.create(topic_name, 1, replicas=3)
    near = client.leader(topic_name, 0) % 3 + 1
    worker = start_worker(client_rack=f"rack-{near}", snapshot_interval=0.5).wait_ready()
    client.send(topic_name, rows(2000))
    worker.wait_saved(2000)
    kafka.stop_node(near)
    failed = f"Failed fetch messages from {near}"
    worker.wait_until(lambda: failed in worker.log(), "without the replica")
    client.send(topic_name, rows(1000))
    worker.wait_saved(3000)
    kafka.start_node(near)
    assert worker.terminate() == 0
    assert_as_clean(client, settings, 1, "at_least_once")


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
def test_a_topic_that_takes_no_records_for_a_while_loses_none(
    delivery, kafka, client, settings, start_worker, topic_name
):
    client.create(topic_name, 2, replicas=3)
    # With one node away the broker answers each write with an error, as it may with a full disk.
    client.create(settings.scores_topic, 2, replicas=3, **{"min.insync.replicas": "3"})
    worker = start_worker(delivery=delivery, snapshot_interval=0.5).wait_ready()
    kafka.kill(2)
    client.send(topic_name, rows(2000, 2))
    worker.wait_until(lambda: "NotEnoughReplicas" in worker.log(), "refused by the topic")
    assert worker.metric("oslrau_records_total") == 0
    assert worker.get("/healthz")[0] == 200
    kafka.start_node(2)
    worker.wait_saved(1000)
    assert worker.terminate() == 0
    assert_as_clean(client, settings, 2, delivery)


def test_records_written_while_all_brokers_restart_one_by_one_are_scored_exactly_once(
    kafka, client, settings, start_worker, topic_name
):
    client.create(topic_name, 3, replicas=3)
    worker = start_worker(delivery="exactly_once", snapshot_interval=0.5).wait_ready()
    restarted = threading.Event()
    sent = []

    def write():
        found = rows(300_000, 3)
        for start in range(0, len(found), 600):
            client.send(topic_name, found[start : start + 600])
            sent.extend(found[start : start + 600])
            if restarted.is_set():
                return

    writer = threading.Thread(target=write)
    writer.start()
    for node in (1, 2, 3):
        kafka.stop_node(node)
        kafka.start_node(node)
        worker.wait_until(lambda: client.is_led_as_preferred(topic_name), "led as preferred")
    restarted.set()
    writer.join()
    worker.wait_saved(len(sent) // 3)
    assert worker.terminate() == 0
    assert_as_clean(client, settings, 3)


def test_while_the_groups_coordinator_is_paused_a_worker_is_replaced_exactly_once(
    kafka, client, settings, start_worker, topic_name
):
    client.create(topic_name, 2, replicas=3)
    worker = start_worker(delivery="exactly_once", snapshot_interval=0.5).wait_ready()
    coordinator = client.leader("__consumer_offsets", 0)
    worker.pause()
    client.send(topic_name, rows(20_000, 2))
    worker.go_on()
    client.wait_messages(settings.scores_topic, 4000)
    kafka.pause(coordinator)
    try:
        time.sleep(_IN_FLIGHT_SECONDS)
        worker.kill()
        second = start_worker(delivery="exactly_once", snapshot_interval=0.5)
        time.sleep(_ELECTION_SECONDS)
    finally:
        kafka.go_on(coordinator)  # it still takes itself for the coordinator
    second.wait_ready().wait_saved(10_000)
    assert second.terminate() == 0
    assert_as_clean(client, settings, 2)
