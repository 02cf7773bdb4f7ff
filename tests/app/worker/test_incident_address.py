"""The address of an incident, asked of the worker that holds its partition and of another one."""

import json

import numpy as np
import pytest

pytestmark = pytest.mark.real_kafka


def _rows(number):
    """Rows of which the last five open an incident in partition 0."""
    values = np.random.default_rng(0).normal(size=(number, 2))
    values[-5:, 1] = 1e6
    return [(0, json.dumps({"a": a, "b": b}).encode()) for a, b in values.tolist()]


def test_each_worker_finds_it(client, start_worker, settings, topic_name, free_port):
    client.create(topic_name, 2)
    client.send(topic_name, _rows(1500))
    workers = [start_worker().wait_ready(), start_worker(web_port=free_port()).wait_ready()]
    client.wait_messages(settings.scores_topic, 1500)
    events = [json.loads(each.value) for each in client.read(settings.anomalies_topic)]
    (name,) = {each["incident"] for each in events if "incident" in each}
    topic, partition, offset = name.split("/")
    query = f"/incident?topic={topic}&partition={partition}&offset={offset}"

    def answers():
        return [json.loads(worker.get(query)[1]) for worker in workers]

    workers[0].wait_until(lambda: sum(each["is_held"] for each in answers()) == 1, "shared out")
    assert [each["incident"]["incident"] for each in answers()] == [name, name]
    for worker in workers:
        assert worker.get(f"/incidents/{name}")[0] == 200
        for other in (f"{topic}/0/1", f"{topic}/7/{offset}"):
            status, text = worker.get(f"/incidents/{other}")
            assert (status, text.startswith(f"There is no incident {other}")) == (404, True)
