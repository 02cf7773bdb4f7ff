"""The course of a field, as the page plots it."""

import math

import orjson
from memory_worker import FIRST, MemoryBroker, MemoryWorker, turns, until, values

from faust_oslrau.app.pages.field_course import field_course


async def test_one_record_of_each_second_comes_with_the_range_that_the_model_expects(worker, clock):
    worker.broker.logs[FIRST] = [*values(2000), b'{"a": 50, "b": 0}', *values(20, seed=3)]
    (partition,) = await worker.assign(FIRST)
    begin = int(clock.now)
    await worker.read(FIRST, 2000)
    clock.now += 3
    await worker.read(FIRST, 1)
    clock.now += 1
    await worker.read(FIRST, 20)
    course = await field_course(partition, "a", begin + 1)
    assert course["fields"] == ("a", "b")
    assert course["times"] == [begin + 3]  # the present second is not over
    assert (course["values"], course["is_anomaly"]) == ([50.0], [True])
    assert course["expected_low"][0] < 0 < course["expected_high"][0] < 50
    clock.now += 1
    later = await field_course(partition, "a", course["until"])
    assert later["times"] == [begin + 4]
    assert not later["is_anomaly"][0]
    assert later["expected_low"][0] < later["values"][0] < later["expected_high"][0]


def _of(machine, found):
    return [orjson.dumps({**orjson.loads(value), "machine": machine}) for value in found]


async def test_an_entity_has_a_course_of_its_own_with_what_is_usual_for_it(tmp_path, clock):
    low, high = _of("low", values(600)), _of("high", values(600, seed=1))
    high = [orjson.dumps({**row, "a": row["a"] + 100}) for row in map(orjson.loads, high)]
    log = [each for pair in zip(low, high, strict=True) for each in pair]
    broker = MemoryBroker([*log, high[0], low[0]])
    async with MemoryWorker(tmp_path, broker, entity="machine") as worker:
        partition = await worker.first_read(1200)
        clock.now += 2
        begin = int(clock.now)
        before = await field_course(partition, "a", 0, "high")
        assert before["times"] == [begin - 2]  # before anybody asked for it
        await worker.read(FIRST, 2)
        clock.now += 1
        course = await field_course(partition, "a", 0, "high")
        assert course["times"] == [begin - 2, begin]
        assert course["values"] == [before["values"][0], orjson.loads(high[0])["a"]]
        assert 90 < course["expected_low"][0] < 100 < course["expected_high"][0] < 110
        assert course["is_of_next"]
        of_low = await field_course(partition, "a", 0, "low")
        assert of_low["times"] == [begin - 2, begin]
        assert of_low["expected_high"][0] < 10
        assert await field_course(partition, "a", 0, "nobody") is None


async def test_with_forecasts_the_range_is_what_was_expected_before_the_record(tmp_path, clock):
    broker, layers = MemoryBroker(values(2001)), {"history": ("10",), "forecasts": True}
    async with MemoryWorker(tmp_path, broker, **layers) as worker:
        (partition,) = await worker.assign(FIRST)
        begin = int(clock.now)
        await worker.read(FIRST, 2000)
        clock.now += 1
        (expected,) = partition.pipeline.scorer.forecast().low
        await worker.read(FIRST, 1)
        clock.now += 1
        course = await field_course(partition, "b", begin + 1)
        assert course["expected_low"] == [expected[1]] and not course["is_of_next"]
        assert course["expected_low"] < course["values"] < course["expected_high"]


async def test_a_young_model_expects_nothing_and_an_unknown_field_has_no_course(worker, clock):
    partition = await worker.first_read(5)
    for name in (None, "nobody"):
        course = await field_course(partition, name, 0)
        assert course["fields"] == ("a", "b")
        assert "values" not in course
    clock.now += 1
    course = await field_course(partition, "b", 0)
    assert len(course["values"]) == 1
    assert math.isnan(course["expected_low"][0]) and math.isnan(course["expected_high"][0])


async def test_the_course_of_a_field_that_is_added_begins_with_it(tmp_path, clock):
    broker = MemoryBroker(values(4000))
    async with MemoryWorker(tmp_path, broker, features=("b",)) as before:
        await before.first_read(1500)
    async with MemoryWorker(tmp_path, broker, features=("a", "b")) as worker:
        (partition,) = await worker.assign(FIRST)
        for _ in range(2):
            clock.now += 1
            await worker.read(FIRST, 1000)
        clock.now += 1
        course = await field_course(partition, "a", 0)
        assert course["times"] == [int(clock.now) - 2, int(clock.now) - 1]
        assert course["expected_low"][1] < course["values"][1] < course["expected_high"][1]


async def test_the_course_of_another_field_begins_as_its_model_takes_over(tmp_path, clock):
    broker = MemoryBroker(values(14_000))
    async with MemoryWorker(tmp_path, broker, features=("b",)) as before:
        await before.first_read(1500)
    async with MemoryWorker(tmp_path, broker, features=("a",)) as worker:
        (partition,) = await worker.assign(FIRST)
        while partition.successor is not None:
            clock.now += 1
            await worker.read(FIRST, 1024)
        clock.now += 1
        course = await field_course(partition, "a", 0)
        assert course["times"] == [int(clock.now) - 1]
        assert course["expected_low"][0] < course["values"][0] < course["expected_high"][0]


async def test_the_course_of_a_field_begins_anew_in_a_topic_that_was_recreated(tmp_path, clock):
    broker = MemoryBroker(values(300))
    async with MemoryWorker(tmp_path, broker, features="auto", lost_history="continue") as worker:
        former = await worker.first_read()
        broker.ids["features"] = "id-2"
        broker.logs[FIRST] = [
            orjson.dumps({**orjson.loads(row), "c": orjson.loads(other)["a"]})
            for row, other in zip(values(300), values(300, seed=1), strict=True)
        ]
        worker.assignment.reopen(former, "its topic was recreated")
        await until(lambda: worker.held.get(FIRST, former) is not former)
        await turns()
        clock.now += 1
        await worker.read(FIRST)
        clock.now += 1
        course = await field_course(worker.held[FIRST], "c", 0)
        assert course["times"] == [int(clock.now) - 1]
