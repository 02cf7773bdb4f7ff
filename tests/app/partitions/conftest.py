"""A topic in memory, and openings that are tried again at once."""

import pytest
from memory_worker import MemoryBroker, MemoryWorker, values

from faust_oslrau.app.partitions import assignment


@pytest.fixture
def broker(monkeypatch):
    """A broker in memory with a topic of two partitions, for which no retry waits long."""
    monkeypatch.setattr(assignment, "_RETRY_SECONDS", 0.005)
    monkeypatch.setattr(assignment, "_TOPICS_SECONDS", 0.005)
    return MemoryBroker(values(300), values(100, seed=1))


@pytest.fixture
def worker(tmp_path, broker):
    """A worker of this broker, without partitions yet."""
    return MemoryWorker(tmp_path, broker)
