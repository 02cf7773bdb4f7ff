"""Every score once, or at least once, though a worker takes itself for the owner."""

import pytest
from clean_run import assert_as_clean, rows

pytestmark = pytest.mark.real_kafka

_OFTEN = {"snapshot_interval": 0.2, "snapshot_records": 1000}


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
def test_a_worker_that_lost_its_partitions_harms_nothing(
    delivery, client, settings, start_worker, topic_name, free_port
):
    client.create(topic_name, 2)
    client.send(topic_name, rows(30_000, 2))
    options = {"session_timeout": 2, "delivery": delivery, **_OFTEN}
    zombie = start_worker(**options)
    client.wait_messages(settings.scores_topic, 4_000)
    zombie.pause()
    heir = start_worker(web_port=free_port(), **options).wait_ready()
    heir.wait_offsets(15_000)
    client.send(topic_name, rows(30_000, 2, seed=1))
    zombie.go_on()
    heir.wait_ready()
    for worker in (zombie, heir):
        worker.wait_until(lambda w=worker: len(w.model()) == 1, "sharing")
        worker.wait_offsets(30_000)
    assert zombie.terminate() == heir.terminate() == 0
    assert_as_clean(client, settings, 2, delivery)
