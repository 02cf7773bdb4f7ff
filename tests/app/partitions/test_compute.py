"""Work on learners is done one thing at a time, in the event loop or in the thread."""

import asyncio
import threading
from contextlib import closing

import pytest

from faust_oslrau.app.partitions.compute import Compute


@pytest.fixture
def compute():
    with closing(Compute()) as found:
        yield found


class Gate:
    """Work that goes on until the gate is open."""

    def __init__(self):
        self.began, self.open = threading.Event(), threading.Event()

    def __call__(self):
        self.began.set()
        assert self.open.wait(60)


@pytest.fixture
def gate():
    found = Gate()
    yield found
    found.open.set()


async def test_errors_of_work_are_for_whoever_asked_for_it(compute):
    asked = [compute.now(int, text) for text in ("1", "x", "3")]

    found = await asyncio.gather(*asked, return_exceptions=True)

    assert found[::2] == [1, 3]
    assert isinstance(found[1], ValueError)


async def test_short_work_that_nobody_waits_for_any_more_is_not_done(compute):
    done = []
    asked = [asyncio.create_task(compute.now(done.append, number)) for number in range(3)]
    await asyncio.sleep(0)
    asked[1].cancel()
    await asyncio.wait(asked)

    assert done == [0, 2]


async def test_nothing_runs_beside_work_that_nobody_waits_for_any_more(compute, gate):
    asked = asyncio.create_task(compute.run(gate))
    await asyncio.to_thread(gate.began.wait, 60)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    later = asyncio.create_task(compute.now(gate.open.is_set))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not later.done()

    gate.open.set()

    assert await later


def test_work_that_outlives_the_event_loop_ends_in_silence(gate, caplog):
    async def leave():
        with closing(Compute()) as compute:
            return await compute.begin(gate)

    begun = asyncio.run(leave())
    gate.open.set()

    assert begun.result(60) is None
    assert caplog.messages == []
