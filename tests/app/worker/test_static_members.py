"""Workers that keep their partitions while they restart."""

import pytest
from clean_run import assert_as_clean, rows

pytestmark = pytest.mark.real_kafka

_WORKERS = 4
# Long enough for a restart, and for a member that comes back to be told from one that is away.
_SESSION_SECONDS = 60.0
_PACE = {"session_timeout": _SESSION_SECONDS, "metadata_seconds": 1.0, "snapshot_interval": 0.5}


@pytest.fixture
def start_named(start_worker, free_port):
    def start(number):
        name = f"worker-{number}"
        return start_worker(group_instance_id=name, web_port=free_port(), **_PACE)

    return start


def _held(worker):
    return [partition["partition"] for partition in worker.model()]


def test_a_rolling_restart_moves_no_partition(client, settings, start_named, topic_name):
    client.create(topic_name, _WORKERS)
    workers = [start_named(number) for number in range(_WORKERS)]
    for worker in workers:
        worker.wait_ready().wait_until(lambda worker=worker: len(_held(worker)) == 1, "alone")
    held = [_held(worker) for worker in workers]
    rebalances = [worker.metric("oslrau_rebalances_total") for worker in workers]
    sent = rows(2000 * _WORKERS, _WORKERS)
    for number in range(_WORKERS):
        client.send(topic_name, sent[2000 * number : 2000 * (number + 1)])
        assert workers[number].terminate() == 0
        others = [worker for worker in workers if worker is not workers[number]]
        assert [worker.metric("oslrau_rebalances_total") for worker in others] == [
            count for other, count in enumerate(rebalances) if other != number
        ]
        workers[number] = start_named(number).wait_ready()
        rebalances[number] = workers[number].metric("oslrau_rebalances_total")
        assert [_held(worker) for worker in workers] == held
    for worker in workers:
        worker.wait_saved(2000)
    assert [worker.metric("oslrau_rebalances_total") for worker in workers] == rebalances

    # The one that leads the group has been restarted, and notices it nevertheless.
    client.add_partitions(topic_name, _WORKERS + 1)
    workers[0].wait_until(lambda: sum(map(len, map(_held, workers))) == _WORKERS + 1, "sharing")
    for worker in workers:
        assert worker.terminate() == 0
    assert_as_clean(client, settings, _WORKERS, "at_least_once")
