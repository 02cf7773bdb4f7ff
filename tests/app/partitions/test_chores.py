"""What a worker does beside the records, for ever: it must neither be forgotten nor end."""

import asyncio
import logging
import math
from collections import Counter
from contextlib import asynccontextmanager

import orjson
import pytest
from aiokafka import OffsetAndMetadata
from memory_worker import FIRST, SECOND, MemoryBroker, MemoryWorker, turns, until

from faust_oslrau.app.kafka.positions import start_metadata
from faust_oslrau.app.metrics.broker_contact import BrokerContact
from faust_oslrau.app.partitions import chores
from faust_oslrau.app.partitions.chores import Chores


@pytest.fixture(autouse=True)
def busy(monkeypatch):
    """The chores are done all the time, and their retries come at once."""
    waits = ("SNAPSHOT", "LAG", "PAST", "TOPICS", "MEMBERS", "ENTITIES")
    for name in (f"_{wait}_SECONDS" for wait in waits):
        monkeypatch.setattr(chores, name, 0.005)


@pytest.fixture(autouse=True)
def looks(monkeypatch):
    """A function that waits until a chore has been done a few more times."""
    rounds, every = Counter(), chores._every

    def counted(seconds, chore):
        async def counting():
            await chore()
            rounds[chore.__name__] += 1

        return every(seconds, counting)

    async def wait(chore):
        enough = rounds[chore] + 3  # the next one may have begun already
        await until(lambda: rounds[chore] >= enough)

    monkeypatch.setattr(chores, "_every", counted)
    return wait


class _Past:
    """Past incidents of each partition, in states one after the other, and who asked for them."""

    def __init__(self):
        self.asked = []
        self.states = ["opened", "closed"]

    async def read(self, tp):
        self.asked.append(tp)
        event = {"incident": f"{tp.topic}/{tp.partition}/2", "opened_timestamp": 5}
        return [
            {**event, "offset": offset, "state": state}
            for offset, state in enumerate(self.states, 2)
        ]


class _Working(MemoryWorker):
    """A worker that does its chores, and is in contact with the broker."""

    def __init__(self, folder, broker, **changes):
        super().__init__(folder, broker, **{"commit_seconds": 0.005, **changes})
        self.contact = BrokerContact()
        self.past = _Past()
        parts = (self.assignment, self.settings, self.consumer, self.contact, self.past)
        self._chores = Chores(*parts)

    @asynccontextmanager
    async def chores(self):
        tasks = [asyncio.ensure_future(chore) for chore in self._chores.chores()]
        yield
        assert not any(task.done() for task in tasks)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def test_snapshots_are_saved_when_they_are_due_and_not_before(tmp_path, broker, looks):
    async with _Working(tmp_path, broker, snapshot_records=200) as worker, worker.chores():
        await worker.assign(FIRST, SECOND)
        await worker.read(FIRST, 199)
        await worker.read(SECOND)
        await looks("_save_snapshots")
        assert await worker.snapshots(FIRST) == []
        await worker.read(FIRST, 1)
        place = {"topic": "features", "partition": "0"}
        await until(lambda: worker.metric("snapshot_bytes", **place) is not None)  # after the file
        assert await worker.snapshots(FIRST) == [200]
        assert await worker.snapshots(SECOND) == []
        assert worker.metric("snapshot_bytes", **place) > 1000
        assert worker.metric("snapshot_age_seconds", **place) >= 0


async def test_a_partition_that_went_while_another_was_saved_is_not_saved(tmp_path, broker, looks):
    async with _Working(tmp_path, broker, snapshot_records=10) as worker:
        await worker.assign(FIRST, SECOND)
        await worker.read(FIRST, 50)
        await worker.read(SECOND, 50)
        first, second = worker.held.values()
        async with worker.chores():
            async with first.lock:
                await asyncio.sleep(0.02)  # the chore waits for the first one's snapshot
                del worker.held[second.tp]
            while await worker.snapshots(first.tp) != [50]:
                await turns()
            await looks("_save_snapshots")
        assert await worker.snapshots(second.tp) == []


async def test_a_worker_without_partitions_asks_the_broker_all_the_same(tmp_path, broker, looks):
    broker.is_away = True
    async with _Working(tmp_path, broker) as worker, worker.chores():
        await looks("_measure_lag")
        assert math.isnan(worker.contact.silent_seconds)
        broker.is_away = False
        await until(lambda: worker.contact.silent_seconds >= 0)


async def test_chores_continue_when_the_broker_comes_back(tmp_path, broker, caplog):
    caplog.set_level(logging.DEBUG)
    async with _Working(tmp_path, broker) as worker, worker.chores():
        (partition,) = await worker.assign(FIRST)
        await until(lambda: partition.lag == 300)
        broker.is_away = True
        await worker.read(FIRST, 100)
        for failure in (
            "could not measure the lag",
            "could not read the topic ids",
            "could not commit",
        ):
            await until(lambda failure=failure: failure in caplog.text)
        assert (partition.lag, broker.committed(FIRST)) == (300, 0)
        broker.is_away = False
        await until(lambda: (partition.lag, broker.committed(FIRST)) == (200, 100))
        assert worker.crashes == []


async def test_a_broker_that_answers_late_counts_as_silent(tmp_path, broker, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(chores, "_ANSWER_SECONDS", 0.005)
    broker.answering.clear()
    async with _Working(tmp_path, broker) as worker, worker.chores():
        await until(lambda: caplog.text.count("could not measure the lag: TimeoutError()") > 1)
        assert math.isnan(worker.contact.silent_seconds)
        broker.answering.set()
        await until(lambda: worker.contact.silent_seconds >= 0)


async def test_a_recreated_topic_is_not_opened_again_in_the_middle_of_a_batch(tmp_path, broker):
    async with _Working(tmp_path, broker, lost_history="continue") as worker, worker.chores():
        (partition,) = await worker.assign(FIRST)
        worker.delivery.acknowledging.clear()
        await worker.begin(FIRST, 100)
        broker.ids["features"] = "id-2"
        await asyncio.sleep(0.03)  # several looks
        assert worker.held == {FIRST: partition}
        worker.delivery.acknowledging.set()
        await until(lambda: worker.held.get(FIRST, partition) is not partition)


async def test_a_group_member_that_is_no_worker_is_named_once(tmp_path, broker, caplog, looks):
    def warnings():
        return [message for message in caplog.messages if "is no worker" in message]

    async with _Working(tmp_path, broker) as worker, worker.chores():
        broker.foreign_members = {"id-1": "client 'other' at 10.0.0.7"}
        await until(warnings)
        await looks("_watch_members")
        (warning,) = warnings()
        assert "client 'other' at 10.0.0.7" in warning and worker.settings.app_id in warning
        broker.foreign_members = {}
        await looks("_watch_members")
        broker.foreign_members = {"id-2": "client 'other' at 10.0.0.7"}  # it is back
        await until(lambda: len(warnings()) == 2)


async def test_past_incidents_are_read_once_of_each_partition(tmp_path, broker, looks):
    async with _Working(tmp_path, broker) as worker, worker.chores():
        await worker.assign(FIRST, SECOND)
        await until(lambda: all(list(p.metrics.history.incidents) for p in worker.held.values()))
        await looks("_read_past_incidents")
        assert sorted(worker.past.asked) == [FIRST, SECOND]
        (known,) = worker.held[FIRST].metrics.history.incidents
        assert (known.offset, known.is_open) == (3, False)


@pytest.mark.parametrize("committed", [None, 200])
async def test_a_past_incident_of_a_model_that_is_gone_is_closed_once_all_is_learned_again(
    committed, tmp_path, broker, looks
):
    if committed is not None:  # what has been learned since is lost
        position = OffsetAndMetadata(committed, start_metadata(0, "id-1", None))
        broker.group[FIRST] = position
    async with _Working(tmp_path, broker) as worker, worker.chores():
        worker.past.states = ["opened"]
        (partition,) = await worker.assign(FIRST)
        await looks("_read_past_incidents")
        (known,) = partition.metrics.history.incidents
        assert known.is_open == (committed is not None)
        await worker.read(FIRST, 250)
        (known,) = partition.metrics.history.incidents
        assert not known.is_open and b'"state":"closed"' in known.content


def _of_machines(names, number=100):
    """Return records of some machines by turns."""
    return [
        orjson.dumps({"a": at % 7, "b": at % 5, "machine": names[at % len(names)]})
        for at in range(number)
    ]


@pytest.mark.parametrize("second", [["lathe", "press"], ["lathe", "saw"]])
async def test_an_entity_with_records_in_two_partitions_is_named(second, tmp_path, caplog, looks):
    broker = MemoryBroker(_of_machines(["drill", "press"]), _of_machines(second))
    async with _Working(tmp_path, broker, entity="machine") as worker, worker.chores():
        await worker.assign(FIRST, SECOND)
        await worker.read(FIRST)
        await worker.read(SECOND)
        await looks("_watch_entities")
    warned = [record.message for record in caplog.records if "entity" in record.message]
    if "press" in second:
        (message,) = warned
        assert "entity 'press' has records in the partitions 0 and 1" in message
    else:
        assert warned == []
