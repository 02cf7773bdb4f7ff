"""Workers while their broker is away: these tests have a Kafka of their own to kill."""

import os
import time

import pytest
from clean_run import assert_as_clean, rows

from faust_oslrau.app.brokers import KafkaBroker

pytestmark = pytest.mark.real_kafka

# Longer than the session timeout. OUTAGE_SECONDS=75 is longer than requests and transactions are
# waited for, too; it takes the suite too long.
_OUTAGE_SECONDS = float(os.environ.get("OUTAGE_SECONDS", "20"))
# A node that comes back is in service again at once.
_QUICK = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}


_RECORDS = 30_000


@pytest.fixture(scope="module")
def _node(kafka_installed, tmp_path_factory):
    with KafkaBroker(tmp_path_factory.mktemp("kafka"), properties=_QUICK) as broker:
        yield broker


@pytest.fixture
def kafka(_node):
    """The node, which runs whatever the test before has done."""
    _node.start_node()
    return _node


# The first test here, as it wants a cluster that nobody has used.
def test_the_first_worker_of_a_fresh_cluster_is_not_ready_while_the_broker_is_away(
    client, start_worker, topic_name, kafka
):
    client.create(topic_name, 2)
    worker = start_worker(session_timeout=3).wait_ready()
    assert worker.metric("oslrau_broker_silent_seconds") < 3
    assert " ERROR " not in worker.log()  # although the group had no coordinator at first
    kafka.kill()
    worker.wait_until(lambda: worker.get("/readyz")[0] == 503, "unready")
    assert "the broker has not answered for" in worker.get("/readyz")[1]
    # the page of metrics may be older than the answer before
    silent = lambda: (worker.metric("oslrau_broker_silent_seconds") or 0) > 3  # noqa: E731
    worker.wait_until(silent, "told of silence")
    assert worker.get("/healthz")[0] == 200  # to start it anew would not bring the broker back
    kafka.start_node()
    worker.wait_ready()
    client.send(topic_name, [(0, b'{"a": 1}')])
    worker.wait_records(1)
    assert worker.metric("oslrau_rebalances_total") >= 1
    assert worker.terminate() == 0


@pytest.fixture
def busy_worker(client, settings, start_worker, topic_name, request):
    """A worker in the middle of its work; by itself it commits only when it stops."""
    client.create(topic_name, 2)
    fields = ", ".join(f'"{name}": 1' for name in "bcdefghijkl")
    client.send(
        topic_name, [(i % 2, f'{{"a": {i % 97}, {fields}}}'.encode()) for i in range(_RECORDS)]
    )
    delivery = getattr(request, "param", "exactly_once")
    worker = start_worker(delivery=delivery, snapshot_interval=0.5, commit_seconds=3000)
    client.wait_messages(settings.scores_topic, 5000)
    return worker


@pytest.mark.parametrize("busy_worker", ["at_least_once", "exactly_once"], indirect=True)
def test_records_are_scored_once_each_after_an_outage(busy_worker, kafka, client, settings):
    kafka.kill()
    assert busy_worker.get("/healthz")[0] == 200
    kafka.start_node()
    busy_worker.wait_records(_RECORDS)
    assert busy_worker.terminate() == 0
    scores = client.read(settings.scores_topic)
    assert len(scores) == len({score.value for score in scores}) == _RECORDS


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
def test_after_a_long_outage_scores_and_states_are_those_of_a_clean_run(
    delivery, kafka, client, settings, start_worker, topic_name
):
    client.create(topic_name, 2)
    client.send(topic_name, rows(_RECORDS, 2))
    worker = start_worker(delivery=delivery, snapshot_interval=0.5)
    client.wait_messages(settings.scores_topic, 5000)
    kafka.kill()
    time.sleep(_OUTAGE_SECONDS)
    assert worker.get("/healthz")[0] == 200
    kafka.start_node()
    worker.wait_ready()
    worker.wait_offsets(_RECORDS // 2)
    assert worker.terminate() == 0
    assert_as_clean(client, settings, 2, delivery)


def test_a_worker_ends_in_bounded_time_without_a_broker(busy_worker, kafka):
    kafka.kill()
    assert busy_worker.terminate(seconds=30) == 3


def test_a_log_that_has_lost_its_end_ends_the_worker(client, kafka, start_worker, topic_name):
    client.create(topic_name)
    client.send(topic_name, rows(300))
    (log,) = kafka.data_dir.glob(f"node-1/log/{topic_name}-0/*.log")
    size = log.stat().st_size
    client.send(topic_name, rows(300, seed=1))
    worker = start_worker(session_timeout=60).wait_records(600)  # it stays in the group
    kafka.kill()
    os.truncate(log, size)  # as a restored disk, or an unclean election
    kafka.start_node()
    assert worker.wait() == 4
    assert " were processed but the log ends at 300 " in worker.log().splitlines()[-1]
