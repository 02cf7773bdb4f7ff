"""Partitions from assignment on: their records, commits, and logs that change."""

import asyncio
from dataclasses import replace

from aiokafka import OffsetAndMetadata
from memory_worker import (
    FIRST,
    SECOND,
    SETTINGS,
    MemoryBroker,
    MemoryWorker,
    records,
    turns,
    until,
    values,
)

from faust_oslrau.app.kafka.batches import RecordBatch
from faust_oslrau.app.kafka.positions import (
    recorded_model,
    recorded_start,
    recorded_topic,
    start_metadata,
)
from faust_oslrau.app.pipeline import PartitionPipeline, initial_digest


async def never_answers(_):
    """Wait for ever, as a call does while no broker answers."""
    await asyncio.Event().wait()


# Assignment and work


async def test_a_new_deployment_records_where_it_begins_and_reads_from_there(worker, broker):
    broker.delete_before(FIRST, 20)
    await worker.assign(FIRST, SECOND)
    assert worker.consumer.positions == {FIRST: 20, SECOND: 0}
    assert {tp: broker.committed(tp) for tp in broker.group} == {FIRST: 20, SECOND: 0}
    assert recorded_start(broker.group[FIRST]) == 20
    assert recorded_topic(broker.group[FIRST]) == "id-1"
    assert worker.metric("assigned_partitions") == 2


async def test_commits_record_the_initial_model(tmp_path, broker):
    pipeline = PartitionPipeline(*FIRST, SETTINGS)
    pipeline.process(records(FIRST, broker.logs[FIRST]))
    model = tmp_path / "model"
    model.write_bytes(pipeline.snapshot(0, 300).to_bytes())
    expected = initial_digest(replace(SETTINGS, initial_model=str(model)))
    async with MemoryWorker(tmp_path, broker, initial_model=str(model)) as worker:
        await worker.assign(FIRST)
        assert recorded_model(broker.group[FIRST]) == expected
        await worker.read(FIRST, 100)
        await worker.assignment.revoked(60)
    assert broker.committed(FIRST) == 100
    assert recorded_model(broker.group[FIRST]) == expected


async def test_the_metadata_of_an_earlier_version_are_named(worker, broker, caplog):
    broker.group[FIRST] = OffsetAndMetadata(200, '{"start": 0}')
    await worker.assign(FIRST)
    assert "features/0: offset 200 was committed by an earlier version" in caplog.text
    await worker.read(FIRST, 200)
    assert broker.offsets(FIRST) == []


async def test_the_first_records_without_an_entity_are_named(tmp_path, broker, caplog):
    async with MemoryWorker(tmp_path, broker, entity="machine") as worker:
        await worker.first_read(100)
        await worker.read(FIRST)
    told = [text for text in caplog.messages if "have no entity" in text]
    assert told == [
        "features/0: 100 of 100 records before offset 100 have no entity, and share one; later "
        "ones are not named"
    ]


async def test_a_misspelt_entity_is_counted_after_a_thousand_records(tmp_path, caplog):
    broker = MemoryBroker(values(1100))
    async with MemoryWorker(tmp_path, broker, entity="machin") as worker:
        await worker.first_read()
        assert worker.metric("empty_fields", topic="features", partition="0") == 1
    assert "records has a value of machin: are the names right?" in caplog.text


async def test_nothing_is_read_before_the_beginning_is_recorded(worker):
    commit, recording = worker.consumer.commit_offsets, asyncio.Event()

    async def record(offsets):
        await recording.wait()
        await commit(offsets)

    worker.consumer.commit_offsets = record
    worker.assignment.assigned(frozenset({FIRST}))
    await until(lambda: FIRST in worker.held)
    await turns()
    assert (worker.consumer.positions, worker.assignment.is_open) == ({}, False)
    recording.set()
    await until(lambda: worker.assignment.is_open)
    assert worker.consumer.positions == {FIRST: 0}


async def test_a_partition_whose_outputs_wait_does_not_hold_up_the_others(worker, broker):
    await worker.assign(FIRST, SECOND)
    worker.delivery.acknowledging.clear()
    await worker.begin(FIRST)
    await worker.begin(SECOND)
    assert worker.delivery.waiting == 2
    worker.delivery.acknowledging.set()
    await until(lambda: len(broker.scores[FIRST]) == 300)


async def test_batches_that_wait_are_joined_up_to_the_size_of_a_poll(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker, batch_records=40) as worker:
        await worker.assign(FIRST)
        worker.delivery.acknowledging.clear()
        await worker.begin(FIRST, 20)
        for count in (10, 30, 20, 40):
            await worker.assignment.handle(worker.consumer.fetch(FIRST, count))
        worker.delivery.acknowledging.set()
        await until(lambda: len(broker.scores[FIRST]) == 120)
        assert worker.delivery.sent == [20, 40, 20, 40]
        assert broker.scores[FIRST] == broker.clean(FIRST)[:120]


async def test_batches_that_a_revocation_dropped_are_read_afterwards(worker, broker, monkeypatch):
    await worker.first_read(100)
    batch = worker.consumer.fetch(FIRST, 50)
    gap = RecordBatch(batch.position, batch.records[10:])
    with monkeypatch.context() as patched:
        patched.setattr(worker.consumer, "first_offsets", never_answers)
        await worker.assignment.handle(gap)
        await turns()
        await worker.assignment.handle(worker.consumer.fetch(FIRST, 50))
        await worker.assignment.revoked(0.01)
    await worker.first_read()
    assert broker.scores[FIRST] == broker.clean(FIRST)


async def test_a_batch_of_a_partition_that_is_not_held_is_ignored(worker, broker):
    await worker.assign(FIRST)
    worker.consumer.positions[SECOND] = 0
    await worker.assignment.handle(worker.consumer.fetch(SECOND))
    await worker.read(FIRST)
    assert broker.offsets(SECOND) == []
    assert worker.crashes == []


async def test_after_a_dropped_batch_the_partition_is_read_from_where_its_state_is(worker, broker):
    await worker.first_read(50)
    worker.consumer.fetch(FIRST, 50)  # dropped
    await worker.read(FIRST, 50)
    assert worker.consumer.positions[FIRST] == 50
    await worker.read(FIRST)
    assert broker.scores[FIRST] == broker.clean(FIRST)


async def test_records_that_were_processed_are_skipped(worker, broker):
    await worker.first_read(100)
    worker.consumer.positions[FIRST] = 50
    await worker.read(FIRST)
    assert broker.scores[FIRST] == broker.clean(FIRST)


async def test_while_learning_again_the_committed_offset_does_not_go_back(worker, broker):
    broker.group[FIRST] = OffsetAndMetadata(150, start_metadata(0, "id-1"))
    partition = await worker.first_read(100)
    assert await worker.assignment.commit([partition])
    assert (broker.offsets(FIRST), broker.committed(FIRST)) == ([], 150)
    await worker.read(FIRST)
    assert broker.scores[FIRST] == broker.clean(FIRST)[150:]


async def test_when_the_flow_resumes_all_partitions_are_read_from_where_they_are(worker):
    await worker.assign(FIRST, SECOND)
    await worker.read(FIRST, 50)
    worker.consumer.positions.clear()
    worker.assignment.resumed()
    await until(lambda: worker.consumer.positions == {FIRST: 50, SECOND: 0})


async def test_an_error_that_nobody_expected_ends_the_app(worker):
    await worker.assign(FIRST)
    batch = worker.consumer.fetch(FIRST, 2)
    await worker.assignment.handle(RecordBatch(0, batch.records[::-1]))
    await until(lambda: worker.crashes)
    assert "expected offset" in str(worker.crashes[0])


# Logs that change under the worker


async def test_a_gap_is_read_again_while_no_broker_says_where_the_log_begins(worker, broker):
    partition = await worker.first_read(100)
    batch = worker.consumer.fetch(FIRST, 50)
    gap = RecordBatch(batch.position, batch.records[10:])
    broker.is_away = True
    await worker.assignment.handle(gap)
    await until(lambda: worker.consumer.positions[FIRST] == 100)
    assert partition.next_offset == 100
    broker.is_away = False
    await worker.assignment.handle(gap)  # offsets that were never records
    await until(lambda: partition.next_offset == 150)
    assert partition.missing == 10


async def test_with_lost_history_continue_a_log_without_its_end_is_learned_anew(tmp_path, broker):
    async with MemoryWorker(tmp_path, broker, lost_history="continue") as worker:
        partition = await worker.first_read(200)
        broker.logs[FIRST] = values(150, seed=2)
        broker.scores.clear()
        await worker.assignment.handle(worker.consumer.fetch(FIRST))
        await until(lambda: worker.held.get(FIRST, partition) is not partition)
        await until(lambda: worker.consumer.positions[FIRST] == 0)
        await worker.read(FIRST)
        assert broker.scores[FIRST] == broker.clean(FIRST)


async def test_a_log_of_which_one_replica_lags_goes_on_where_it_was(worker, broker):
    partition = await worker.first_read(200)
    for broker.is_away in (True, False):
        await worker.assignment.handle(RecordBatch(200, records(FIRST, broker.logs[FIRST][:100])))
        worker.consumer.positions[FIRST] = 100
        await until(lambda: worker.consumer.positions[FIRST] == 200)
    await worker.read(FIRST)
    assert worker.held == {FIRST: partition}
    assert broker.scores[FIRST] == broker.clean(FIRST)
