"""The bound of the batches in work."""

import asyncio

import pytest

from faust_oslrau.app.partitions.work_limit import WorkLimit


async def _begun(limit: WorkLimit, sizes: list[int]) -> int:
    """Begin batches one after the other; return how many began without another one's end."""
    for count, size in enumerate(sizes):
        task = asyncio.create_task(limit.begin(size))
        for _ in range(5):
            await asyncio.sleep(0)
        if not task.done():
            task.cancel()
            return count
    return len(sizes)


@pytest.mark.parametrize(
    ("sizes", "begun"), [([1] * 9, 4), ([60, 60], 1), ([40, 40, 20, 1], 3), ([500, 1], 1)]
)
def test_batches_begin_as_long_as_there_is_room(sizes: list[int], begun: int) -> None:
    async def count() -> int:
        return await _begun(WorkLimit(batches=4, records=100), sizes)

    assert asyncio.run(count()) == begun


def test_the_end_of_a_batch_makes_room_for_the_next_one() -> None:
    async def run() -> None:
        limit = WorkLimit(batches=4, records=100)
        await limit.begin(90)
        waiting = asyncio.create_task(limit.begin(90))
        await asyncio.sleep(0)
        assert not waiting.done()
        limit.end(90)
        async with asyncio.timeout(5):
            await waiting

    asyncio.run(run())
