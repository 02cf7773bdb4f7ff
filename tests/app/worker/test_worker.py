"""Workers as processes on a real Kafka."""

import asyncio
import re
from collections import Counter
from itertools import chain, count

import pytest
from aiokafka import AIOKafkaConsumer
from clean_run import by_partition, clean_run, rows, scores_of

from faust_oslrau.app.pipeline import PartitionPipeline

pytestmark = pytest.mark.real_kafka


def _trace(key):
    return ("traceparent", key), ("tracestate", b"a=b")


def _traced(found):
    """Return rows with headers, of which one in two thousand is far away."""
    for i, (partition, value, key, _, time) in enumerate(found):
        far = b'{"a": 1000, "b": 0}' if i % 1999 == 1998 else value
        yield partition, far, key, (("other", b"1"), *_trace(key)), time


def _contents(messages):
    return [(m.key, m.timestamp, m.value, tuple(m.headers)) for m in messages]


def _outputs(records):
    """Return key, timestamp, value and headers of each record, by partition in order."""
    return {p: _contents(part) for p, part in by_partition(records).items()}


def _offline(records, settings):
    """Return what the pipeline makes of a topic's records, without Kafka."""
    scores, anomalies = {}, {}
    for partition, part in by_partition(records).items():
        block = PartitionPipeline(part[0].topic, partition, settings).process(part)
        scores[partition] = _contents(block.scores)
        if block.alerts:
            anomalies[partition] = _contents(block.alerts)
    return scores, anomalies


def test_live_scores_equal_the_pipelines_offline(client, settings, start_worker, topic_name):
    client.create(topic_name, 4)
    client.send(topic_name, _traced(rows(8000, 4)))
    worker = start_worker().wait_records(8000)
    client.send(topic_name, _traced(rows(1001, 4, seed=1)))  # comes in other pieces
    assert worker.wait_records(9001).terminate() == 0
    scores, anomalies = _offline(client.read(topic_name), settings)
    assert _outputs(client.read(settings.scores_topic)) == scores
    alerts = _outputs(client.read(settings.anomalies_topic))
    assert alerts == anomalies
    for key, *_, headers in chain(*scores.values()):
        assert headers == _trace(key)
    for key, *_, headers in chain(*alerts.values()):
        assert set(_trace(key)) <= set(headers) and "other" not in dict(headers)
    assert alerts


def _shown(worker):
    """Return the partitions that a worker shows any series of."""
    return set(re.findall(r'partition="(\d+)"', worker.get("/metrics")[1]))


def test_a_second_worker_shares_the_partitions_with_their_series_and_nothing_is_lost(
    client, settings, start_worker, topic_name, free_port
):
    client.create(topic_name, 4)
    client.send(topic_name, rows(4000, 4))
    first = start_worker().wait_ready().wait_records(2000)
    first.wait_until(lambda: _shown(first) == set("0123"), "showing all")
    second = start_worker(web_port=free_port())
    client.send(topic_name, rows(4000, 4, seed=1))
    second.wait_ready()
    first.wait_ready()
    for worker in (first, second):
        worker.wait_until(lambda w=worker: len(w.model()) == 2, "holding two partitions")
    client.send(topic_name, rows(4000, 4, seed=2))
    for worker in (first, second):
        worker.wait_offsets(3000)
        worker.wait_metric(2, "oslrau_assigned_partitions")
        assert worker.metric("oslrau_rebalances_total") >= 1
    assert sorted(_shown(first) | _shown(second)) == sorted([*_shown(first), *_shown(second)])
    assert first.terminate() == second.terminate() == 0
    assert scores_of(client, settings) == clean_run(client, settings)[0]


def test_bad_input_is_dead_letters_byte_for_byte(client, settings, start_worker, topic_name):
    bad = {
        b'{"a": 1': "not_json",
        b'{"a": NaN}': "not_json",
        b'{"a": "text"}': "not_a_number",
        b'{"a": 1e400}': "not_finite",
        b"{}": "no_features",
        b"[1]": "not_an_object",
        b"\xff\xfe": "not_utf8",
        None: "no_value",
        b" " * 1_000_001: "too_large",
        b" " * 1_048_400: "too_large",  # just below what the broker takes
    }
    client.create(topic_name, 2)
    headers = (("traceparent", b"00-1f-2e-01"),)
    flood = [b"[%d]" % i for i in range(10_000)]
    rejected = [(1, value, b"k" if value is None else None, headers) for value in [*bad, *flood]]
    client.send(topic_name, [*rejected, *[(1, row[1]) for row in rows(100)]])
    worker = start_worker(features="a", max_message_bytes=1_000_000)
    worker.wait_records(len(rejected) + 100)
    for reason, number in Counter(bad.values()).items():
        expected = number + len(flood) * (reason == "not_an_object")
        assert worker.metric("oslrau_dead_letters_total", reason=reason) == expected
    assert worker.terminate() == 0
    assert len(client.read(settings.scores_topic)) == 100
    letters = client.read(settings.dead_letter_topic)
    assert [letter.value for letter in letters] == [*bad, *flood]
    assert {letter.partition for letter in letters} == {1}
    for offset, letter, reason in zip(count(), letters, bad.values(), strict=False):
        assert letter.headers[0] == headers[0]
        found = dict(letter.headers)
        assert found["oslrau-reason"] == reason.encode()
        assert found["oslrau-topic"] == topic_name.encode()
        assert (found["oslrau-partition"], found["oslrau-offset"]) == (b"1", b"%d" % offset)


def test_an_aborted_transaction_is_not_scored(client, settings, start_worker, topic_name):
    client.create(topic_name)
    client.send(topic_name, rows(10), abort=False)
    client.send(topic_name, rows(10, seed=1), abort=True)
    client.send(topic_name, rows(10, seed=2), abort=False)
    worker = start_worker().wait_records(20)
    # Two marks, ten aborted records: the mark at the end has no record after it.
    worker.wait_metric(12, "oslrau_missing_offsets_total")
    assert worker.terminate() == 0
    scores, _ = _offline(client.read(topic_name), settings)
    assert _outputs(client.read(settings.scores_topic)) == scores
    assert len(scores[0]) == 20


def test_another_program_in_the_group_is_named(client, settings, start_worker, topic_name):
    client.create(topic_name)
    client.send(topic_name, rows(400))

    async def join(worker):
        async with AIOKafkaConsumer(
            topic_name,
            bootstrap_servers=client.servers,
            group_id=settings.app_id,
            client_id="other-program",
            enable_auto_commit=False,
        ):
            named = lambda: "no worker, client 'other-program' at" in worker.log()  # noqa: E731
            await asyncio.to_thread(worker.wait_until, named, "aware of the other program")

    asyncio.run(join(start_worker(snapshots="off").wait_records(400)))


def test_a_source_topic_may_come_later(client, settings, start_worker, topic_name):
    worker = start_worker()
    worker.wait_until(lambda: f"waiting for topic {topic_name}" in worker.log(), "waiting")
    assert worker.get("/readyz") == (
        503,
        '{"status":"unavailable","reason":"waiting for the broker and the topics"}',
    )
    assert worker.get("/healthz")[0] == 200
    client.create(topic_name)
    client.send(topic_name, rows(10))
    assert worker.wait_ready().wait_records(10).terminate() == 0


def test_a_worker_that_waits_for_its_topic_can_be_stopped(start_worker, topic_name):
    worker = start_worker()
    worker.wait_until(lambda: f"waiting for topic {topic_name}" in worker.log(), "waiting")
    assert worker.terminate() == 0


def test_a_worker_whose_source_topic_is_deleted_says_so(client, settings, start_worker, topic_name):
    client.create(topic_name, 1)
    worker = start_worker().wait_ready()
    client.delete(topic_name)
    told = f"reading nothing: the broker does not know {topic_name}"
    worker.wait_until(lambda: told in worker.log(), told)
    assert "more workers than partitions" not in worker.log()
    assert worker.terminate() == 0
