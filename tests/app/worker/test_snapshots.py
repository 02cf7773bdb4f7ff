"""Workers that go on from snapshots, on a real Kafka: in the topic, and in a folder."""

import asyncio
from dataclasses import replace

import orjson
import pytest
from clean_run import assert_as_clean, clean_run, newest_states, rows, scores_of
from faust.types import TP
from worker_settings import snapshots_in

from faust_oslrau.app.kafka.security import client_arguments
from faust_oslrau.app.kafka.transactions import Producers
from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.snapshots.configured import snapshot_store
from faust_oslrau.learner.state import Extent

pytestmark = pytest.mark.real_kafka

# Snapshots every few hundred records.
_OFTEN = {"snapshot_interval": 0.1, "snapshot_records": 500, "batch_records": 500}


@pytest.fixture
def settings(settings, request, tmp_path):
    kind = getattr(request, "param", "topic")
    return replace(settings, snapshots=snapshots_in(kind, settings, tmp_path))


def test_a_restart_continues_from_the_snapshot_of_the_shutdown(
    client, settings, start_worker, topic_name
):
    client.create(topic_name, 2)
    client.send(topic_name, [*rows(3000, 2), (0, b"broken")])
    assert start_worker().wait_records(3001).terminate() == 0
    client.send(topic_name, rows(1000, 2, seed=1))
    worker = start_worker().wait_records(1000)
    assert worker.metric("oslrau_records_total", outcome="replayed") == 0
    assert sorted(part["snapshot_offset"] for part in worker.model()) == [1500, 1501]
    worker.wait_metric(2, "oslrau_stage_seconds_count", stage="restore")
    assert worker.terminate() == 0
    assert_as_clean(client, settings, 2)


@pytest.mark.parametrize("settings", ["topic", "folder"], indirect=True)
def test_after_kills_scores_and_states_equal_those_of_a_clean_run(
    client, settings, start_worker, topic_name
):
    client.create(topic_name, 2)
    total = 0
    for seed in range(3):
        client.send(topic_name, rows(10_000, 2, seed))
        total += 10_000
        found = client.wait_messages(settings.scores_topic, 0)
        worker = start_worker(session_timeout=2, commit_seconds=0.7, **_OFTEN)
        client.wait_messages(settings.scores_topic, found + 4_000)  # in the middle of its work
        worker.kill()
    last = start_worker(**_OFTEN).wait_ready()
    last.wait_offsets(total // 2)
    assert last.metric("oslrau_records_total", outcome="replayed") < total / 2
    assert last.terminate() == 0
    assert_as_clean(client, settings, 2, "at_least_once")


def test_a_snapshot_inside_the_log_makes_up_for_lost_history_and_one_before_it_does_not(
    client, settings, start_worker, topic_name
):
    client.create(topic_name)
    client.send(topic_name, rows(500))
    start_worker().wait_records(500).terminate()
    client.send(topic_name, rows(500, seed=1))
    whole = clean_run(client, settings)[0]
    client.delete_before(topic_name, 0, 300)
    assert start_worker().wait_records(500).terminate() == 0
    assert scores_of(client, settings) == whole

    client.send(topic_name, rows(500, seed=2))
    client.delete_before(topic_name, 0, 1100)
    refused = start_worker()
    assert refused.wait() == 4
    assert "the state is at offset 1000 but the log begins at 1100" in refused.log()
    worker = start_worker(lost_history="continue").wait_records(400)
    worker.wait_metric(100, "oslrau_missing_offsets_total")
    assert worker.model()[0]["records"] == 1400
    worker.terminate()


def test_with_other_settings_a_model_goes_on_until_the_next_one_has_learned(
    client, settings, start_worker, topic_name
):
    client.create(topic_name)
    client.send(topic_name, rows(3000))
    start_worker().wait_records(3000).terminate()
    client.send(topic_name, rows(13_000, seed=1))
    changed = {"features": "b", "learner_memory": 5000}
    worker = start_worker(**changed, **_OFTEN)
    client.wait_messages(settings.scores_topic, 9000)  # in the middle of the change
    worker.kill()
    last = start_worker(**changed).wait_ready()
    last.wait_offsets(16_000)
    assert (last.model()[0]["start"], last.model()[0]["fields"]) == (3000, ["b"])
    assert last.terminate() == 0
    assert "features = 'auto', now ['b']; learner.memory = None, now 5000.0" in worker.log()

    found = {orjson.loads(score)["offset"]: score for score in scores_of(client, settings)[0]}
    log, before = client.read(topic_name), PartitionPipeline(topic_name, 0, settings)
    own = {"features": ("b",), "learner": replace(settings.learner, memory=5000)}
    after = PartitionPipeline(topic_name, 0, replace(settings, **own))
    old, new = before.process(log).scores, after.process(log[3000:]).scores
    taken_over = 13_312  # the next multiple of 1,024 after 10,208 records
    expected = [*old[:taken_over], *new[taken_over - 3000 :]]
    assert [found[offset] for offset in range(16_000)] == [score.value for score in expected]


def test_a_snapshot_of_another_version_is_refused_in_one_line(
    client, settings, start_worker, topic_name
):
    client.create(topic_name)
    client.send(topic_name, rows(300))
    start_worker().wait_records(300).terminate()
    newest = newest_states(settings, 1)
    _save(settings, TP(topic_name, 0), 301, newest[0][:7] + b"\x09" + newest[0][8:])
    line = _refusal(start_worker)
    assert line.startswith(f"Error: the snapshot of {topic_name}/0 at offset 301 is from another ")
    assert "expected format version 1, got 9" in line and "inspect --forget" in line
    assert newest_states(settings, 1)[0][7] == 9  # it is kept


def _refusal(start_worker, **changes):
    worker = start_worker(log_level="ERROR", **changes)
    assert worker.wait() == 2
    return worker.log().splitlines()[-1]


def _save(settings, tp, next_offset, data):
    async def save():
        producers = Producers(settings.app_id, client_arguments(settings))
        store = snapshot_store(settings, producers)
        await producers.open(tp)
        await store.open(tp)
        await store.save(tp, next_offset, Extent.of(data))
        await producers.close()

    asyncio.run(save())
