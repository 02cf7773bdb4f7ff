"""What a poll has fetched, on its way to the partitions."""

import asyncio

from memory_worker import FIRST, SECOND, turns, until
from prometheus_client import CollectorRegistry

from faust_oslrau.app.kafka.batches import Fetched
from faust_oslrau.app.partitions import rests
from faust_oslrau.app.partitions.assignment import BATCHES_IN_WORK
from faust_oslrau.app.partitions.runtime import Runtime


async def test_the_next_poll_waits_until_all_batches_of_the_last_one_are_in_work(worker, broker):
    runtime = Runtime(worker.settings, CollectorRegistry(), worker._crash)
    runtime.assignment = worker.assignment
    await worker.assign(FIRST, SECOND)
    worker.delivery.acknowledging.clear()
    for _ in range(31):
        await runtime.handle(Fetched([worker.consumer.fetch(FIRST, 5)]))
    await runtime.taken()
    batches = [worker.consumer.fetch(FIRST), worker.consumer.fetch(SECOND)]
    handling = asyncio.create_task(runtime.handle(Fetched(batches)))
    await turns()
    polling = asyncio.create_task(runtime.taken())
    await turns()
    assert not polling.done()
    worker.delivery.acknowledging.set()
    await asyncio.gather(handling, polling)
    await until(lambda: broker.scores[SECOND] == broker.clean(SECOND))
    assert broker.scores[FIRST] == broker.clean(FIRST)


async def test_the_next_poll_waits_as_long_as_short_visits_took(worker, monkeypatch):
    moments = iter([0.0, 0.1])
    monkeypatch.setattr(rests, "monotonic", lambda: next(moments))
    runtime = Runtime(worker.settings, CollectorRegistry(), worker._crash)
    runtime.assignment = worker.assignment
    await worker.assign(FIRST)
    batches = [worker.consumer.fetch(FIRST, 1) for _ in range(BATCHES_IN_WORK + 1)]
    await runtime.handle(Fetched(batches))
    began = asyncio.get_running_loop().time()
    await runtime.taken()
    assert asyncio.get_running_loop().time() >= began + 0.1
