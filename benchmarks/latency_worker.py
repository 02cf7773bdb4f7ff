"""The worker with a timed event loop: ``python -m benchmarks.latency_worker``."""

from __future__ import annotations

import asyncio
import time
from unittest.mock import patch

from prometheus_client import Gauge

from faust_oslrau.app.cli import main
from faust_oslrau.app.kafka.transport import Consumer
from faust_oslrau.app.partitions.runtime import Runtime

_STEP_SECONDS = 0.005
_start = Runtime.start


class LoopWatch:
    """The longest delay of the event loop since it was last read."""

    def __init__(self) -> None:
        self._longest = 0.0

    async def run(self) -> None:
        """Sleep in short steps, for ever."""
        while True:
            began = time.perf_counter()
            await asyncio.sleep(_STEP_SECONDS)
            self._longest = max(self._longest, time.perf_counter() - began - _STEP_SECONDS)

    def take(self) -> float:
        """Return the longest delay, and reset it."""
        longest, self._longest = self._longest, 0.0
        return longest


async def start_watched(self: Runtime, consumer: Consumer) -> None:
    """Start the parts of the worker, and measure the event loop."""
    watch = LoopWatch()
    shown = Gauge("benchmark_late_seconds", LoopWatch.__doc__ or "", registry=self.metrics.registry)
    shown.set_function(watch.take)
    await _start(self, consumer)
    self._chores.append(asyncio.create_task(watch.run()))


if __name__ == "__main__":
    with patch.object(Runtime, "start", start_watched):
        main(["worker"])
