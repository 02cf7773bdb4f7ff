"""Bounds on what readers may cost the worker, so that they cannot slow scoring."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager

from .answers import Answer, compress

_REFUSE_SECONDS = 1.0
# Refusals, of the answers each second.
_REFUSED_SHARE = 0.2
# Pages that are kept: enough for a few readers, few enough that large networks take little memory.
_MOST_PAGES = 32


class RequestLimit:
    """Bounds the requests per second and at a time.

    Requests beyond `per_second` wait, so that a client that asks again at once is slowed down.
    Requests beyond `at_once` are refused. The refusals wait as well, for the same reason.

    Parameters
    ----------
    per_second
        Requests that are answered each second, of all clients together.
    at_once
        Requests that wait, are being answered, or are being sent to a slow reader.
    """

    def __init__(self, per_second: float, at_once: int) -> None:
        self._at_once = at_once
        self._present = 0
        self._answers = Turns(per_second)
        self._refusals = Turns(_REFUSED_SHARE * per_second)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[bool]:
        """Wait for a request's turn; the value is whether it may be answered."""
        if self._present >= self._at_once:
            await asyncio.sleep(_REFUSE_SECONDS + self._refusals.take())
            yield False
            return
        self._present += 1
        try:
            await asyncio.sleep(self._answers.take())
            yield True
        finally:
            self._present -= 1


class Turns:
    """Turns in steady succession; those that nobody took within a second are kept."""

    def __init__(self, per_second: float) -> None:
        self._interval = 1 / per_second
        self._next = time.monotonic()

    def take(self) -> float:
        """Return the seconds until the next turn, which nobody else gets."""
        now = time.monotonic()
        self._next = max(self._next, now - 1) + self._interval
        return max(0.0, self._next - now)


class SharedPages:
    """Makes pages for all readers together, one after the other.

    Parameters
    ----------
    share
        The largest share of the time in which pages are made. After a page that took long, the next
        one waits, and the same one is used for longer.
    seconds
        For how long a page is used at least.
    """

    def __init__(self, share: float, seconds: float) -> None:
        self._rest = 1 / share - 1
        self._seconds = seconds
        self._begin_at = 0.0
        self._lock = asyncio.Lock()
        self._pages: dict[Hashable, tuple[float, Answer]] = {}

    async def get(self, key: Hashable, make: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return the page of this key, made anew if it is too old."""
        page = self._fresh(key)
        if page is None:
            async with self._lock:
                page = self._fresh(key) or await self._make(key, make)
        return page

    def _fresh(self, key: Hashable) -> Answer | None:
        until, page = self._pages.get(key, (0.0, None))
        return page if time.monotonic() < until else None

    async def _make(self, key: Hashable, make: Callable[[], Awaitable[Answer]]) -> Answer:
        await asyncio.sleep(max(0.0, self._begin_at - time.monotonic()))
        began = time.monotonic()
        page = await compress(await make())
        made = time.monotonic()
        self._begin_at = made + self._rest * (made - began)
        self._pages = {k: found for k, found in self._pages.items() if made < found[0]}
        if len(self._pages) >= _MOST_PAGES:
            del self._pages[next(iter(self._pages))]
        self._pages[key] = max(self._begin_at, began + self._seconds), page
        return page
