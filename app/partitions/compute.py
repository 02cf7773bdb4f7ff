"""Runs what learners do, one thing at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Compute:
    """A thread for work that takes long, and a way to do short work without it.

    The kernels release the interpreter's lock each time. A thread that shares it with a busy event
    loop waits for it after each, which makes a block of 40 records take three times as long. So
    what is short is done in the event loop, if nothing else runs.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "oslrau-compute")
        self._running = Lock()

    def now(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T | None:
        """Do short work at once; None if other work is running."""
        if not self._running.acquire(blocking=False):
            return None
        try:
            return work(*args, **kwargs)
        finally:
            self._running.release()

    def submit(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Have work done in the thread, after all that was submitted before."""
        return self._thread.submit(partial(self._alone, work, *args, **kwargs))

    async def run(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Wait for work to be done in the thread."""
        return await asyncio.wrap_future(self.submit(work, *args, **kwargs))

    def close(self) -> None:
        """Start no more work; what runs is not waited for."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _alone(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        with self._running:
            return work(*args, **kwargs)
