"""Work on learners is done one thing at a time, in the event loop or in the thread."""

import threading
from contextlib import closing

import pytest

from faust_oslrau.app.partitions.compute import Compute


@pytest.fixture
def compute():
    with closing(Compute()) as found:
        yield found


@pytest.fixture
def busy(compute):
    """The compute thread with work that goes on until the event is set."""
    began, end = threading.Event(), threading.Event()

    def work():
        began.set()
        return end.wait(60)

    compute.submit(work)
    assert began.wait(60)
    yield end
    end.set()


def test_short_work_is_done_in_the_calling_thread(compute):
    assert compute.now(threading.get_ident) == threading.get_ident()


async def test_long_work_is_done_in_another_thread(compute):
    assert await compute.run(threading.get_ident) != threading.get_ident()


def test_nothing_is_done_beside_other_work(compute, busy):
    assert compute.now(threading.get_ident) is None

    later = compute.submit(compute.now, threading.get_ident)
    assert not later.done()
    busy.set()

    assert later.result(60) is None  # the lock is held while the thread works


def test_failed_work_makes_room_for_other_work(compute):
    def fail():
        raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        compute.now(fail)
    with pytest.raises(ValueError, match="failed"):
        compute.submit(fail).result(60)

    assert compute.now(lambda: 1) == 1
