"""A worker's runtime around partitions without a broker, for the pages to look at."""

import pytest
from memory_worker import MemoryBroker, MemoryWorker, values
from prometheus_client import CollectorRegistry

from faust_oslrau.app.metrics import broker_contact, history
from faust_oslrau.app.pages import field_course, health, live_state
from faust_oslrau.app.partitions import assignment
from faust_oslrau.app.partitions.runtime import Runtime


class Clock:
    """Seconds that the test lets pass, for the pages and what they show."""

    def __init__(self):
        self.now = 1_000_000.0
        self.set_back = 0.0  # by how much the clock on the wall was

    def time(self):
        return self.now - self.set_back

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    for module in (broker_contact, history, field_course, health, live_state, assignment):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(live_state, "_BEGAN", clock.now)
    return clock


@pytest.fixture
def worker(tmp_path):
    """A worker without partitions yet, with a topic of two."""
    return MemoryWorker(tmp_path, MemoryBroker(values(300), values(100, seed=1)))


@pytest.fixture
def runtime(worker):
    """The worker's runtime, which has not been started."""

    async def crash(error):
        raise error

    return Runtime(worker.settings, CollectorRegistry(), crash)


@pytest.fixture
def joined(runtime, worker):
    """The runtime as it is when the group may be joined."""
    runtime.preparing = None
    runtime.assignment = worker.assignment
    runtime.contact.mark_answer()
    return runtime
