"""Runs what learners do, one thing at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Wave = deque[tuple[asyncio.Future[Any], Callable[[], Any]]]

# How long short work goes on before the event loop does other things. What is done in a row finds
# code and data of the one before in the processor's caches, and is sent in one request.
_WAVE_SECONDS = 0.005


class Compute:
    """Does short work in the event loop, and long work in a thread; all in its turn.

    A thread that shares the interpreter's lock with a busy event loop waits for it again and again,
    which made a block of 40 records take three times as long.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "oslrau-compute")
        self._turn = asyncio.Lock()
        self._wave: _Wave | None = None  # to which short work is added
        self._waves: set[asyncio.Task[None]] = set()

    async def now(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Do short work in the event loop, once all that was asked for before is done."""
        if self._wave is None:
            self._wave = deque()
            wave = asyncio.create_task(self._do(self._wave))
            self._waves.add(wave)
            wave.add_done_callback(self._waves.discard)
        done: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        self._wave.append((done, partial(work, *args, **kwargs)))
        return await done

    async def begin(
        self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
    ) -> Future[_T]:
        """Begin work in the thread, once all that was asked for before is done.

        Nothing else runs before it ends, also if whoever asked for it is cancelled.
        """
        self._wave = None
        await asyncio.sleep(0)  # until the waves before have asked for their turn
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

    async def _do(self, wave: _Wave) -> None:
        """Do a wave of short work, and what is added to it meanwhile."""
        async with self._turn:
            while wave:
                _do_some(wave)
                await asyncio.sleep(0)
            if self._wave is wave:
                self._wave = None

    def _release(self, loop: asyncio.AbstractEventLoop, _: Future[Any]) -> None:
        with suppress(RuntimeError):  # the loop was closed while the work ran
            loop.call_soon_threadsafe(self._turn.release)


def _do_some(wave: _Wave) -> None:
    """Do work of a wave for some time, but what nobody waits for any more."""
    until = perf_counter() + _WAVE_SECONDS
    while wave and perf_counter() < until:
        done, work = wave.popleft()
        if done.cancelled():
            continue
        try:
            done.set_result(work())
        except Exception as error:  # for whoever has asked
            done.set_exception(error)
