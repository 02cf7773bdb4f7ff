"""Runs what learners do, one thing at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Compute:
    """Does short work in the event loop, and long work in a thread; all in its turn.

    A thread that shares the interpreter's lock with a busy event loop waits for it again and again,
    which made a block of 40 records take three times as long.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "oslrau-compute")
        self._turn = asyncio.Lock()

    async def now(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Do short work in the event loop, once all that was asked for before is done."""
        await self._turn.acquire()
        try:
            return work(*args, **kwargs)
        finally:  # not at once: the event loop has other things to do between two blocks
            asyncio.get_running_loop().call_soon(self._turn.release)

    async def begin(
        self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
    ) -> Future[_T]:
        """Begin work in the thread, once all that was asked for before is done.

        Nothing else runs before it ends, also if whoever asked for it is cancelled.
        """
        await self._turn.acquire()
        try:
            begun = self._thread.submit(partial(work, *args, **kwargs))
        except RuntimeError:  # closed: others that wait have to learn of it, too
            self._turn.release()
            raise
        begun.add_done_callback(partial(self._release, asyncio.get_running_loop()))
        return begun

    async def run(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Do work in the thread, once all that was asked for before is done."""
        return await asyncio.wrap_future(await self.begin(work, *args, **kwargs))

    def close(self) -> None:
        """Begin no more work in the thread; what runs is not waited for."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _release(self, loop: asyncio.AbstractEventLoop, _: Future[Any]) -> None:
        with suppress(RuntimeError):  # the loop was closed while the work ran
            loop.call_soon_threadsafe(self._turn.release)
