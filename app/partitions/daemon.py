"""Runs what takes long in a thread that keeps no program from ending."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future


async def run_in_daemon(call: Callable[[], None]) -> None:
    """Run a call in a thread; `asyncio.to_thread` would wait for it at the end of the program."""
    done: Future[None] = Future()
    done.set_running_or_notify_cancel()  # who stops waiting cancels nothing

    def run() -> None:
        try:
            call()
        except BaseException as error:  # the one who waits shall get to know it
            done.set_exception(error)
        else:
            done.set_result(None)

    threading.Thread(target=run, name=run_in_daemon.__name__, daemon=True).start()
    await asyncio.wrap_future(done)
