"""Preparation of the compiled kernels before records flow."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import IO, Any, cast

import numpy as np
from numba.core import event

from faust_oslrau.learner.arrays import FloatArray

from .oslrau import OSLRAU
from .scoring.incident import IncidentParameters
from .scoring.tail_mass import TailMass
from .stream import StreamScorer
from .vector.compiler import KERNELS, Kernel

FEWEST_FIELDS = 3
WIDE = 130
"""Fields from which on a background has blocks."""

_SIZE_BYTES = 8
_MOST_BYTES = 65_536  # as many as a pipe holds, which are whole lines

Told = Callable[[int, int], None]
"""Told, after each kernel, how many were compiled, and about how many there are."""


def compile_scorer(
    scorer: StreamScorer, n_fields: int = FEWEST_FIELDS, told: Told | None = None
) -> None:
    """Compile the kernels that a new scorer of ``n_fields`` numbers needs, or load them.

    Runs each kernel on a tiny stream, which uses the scorer up. It should alarm often, so that
    there is something to explain. A second process compiles what is not needed to learn.
    """
    with _watched(_Compilation(scorer, told)), _no_collection():
        _learn(scorer)
        _run(scorer, n_fields)


def compile_kernels() -> None:
    """Compile all kernels that there may be need of, or load them from their cache."""
    model = OSLRAU(min_count=8, max_leaf_vars=2, mixtures=True, memory=2000.0)
    new = partial(StreamScorer, alarm_rate=0.1, incidents=IncidentParameters())
    compile_scorer(new(model, transforms={0: "count"}))
    compile_scorer(new(OSLRAU(), max_entities=8, forecasting=True))
    compile_scorer(new(OSLRAU(), n_categories=2))
    timed = partial(new, seasons="UTC", silences=True, rates=60.0)
    compile_scorer(timed(OSLRAU(), history=("10",), forecasting=True))
    rows = _rows(WIDE)
    OSLRAU().partial_fit(rows[:48], batch_size=16)
    rows = rows[:, :FEWEST_FIELDS]
    model.partial_fit(rows, batch_size=16)
    model.score_samples(rows, variance_floor=1e-3)
    model.given_others(rows)
    model.conditional_quantiles(rows[:20] * np.nan, [0.01, 0.99])


def _run(scorer: StreamScorer, n_fields: int = FEWEST_FIELDS) -> None:
    """Process a stream with whatever may happen in one."""
    rows = _rows(max(FEWEST_FIELDS, n_fields))
    n = np.arange(len(rows))
    categories = np.add.outer(n, np.arange(scorer.parameters["n_categories"])) % 3
    rows = np.column_stack([rows, categories])
    keys = [b"%d" % (k % 9) for k in n] if scorer.parameters["max_entities"] else None
    places = np.column_stack([n, 1000 * n])
    groups = None if scorer.rates_by is None else [None] * len(n)
    for some in np.split(n, [1, 41, 900, 901]):
        own = keys and [keys[k] for k in some]
        scorer.process(rows[some], own, places[some], groups and groups[: len(some)])
    scorer = StreamScorer.from_bytes(scorer.to_bytes(), type(scorer.learner))
    scorer.process(rows, keys, places + places[-1], groups)


def _learn(scorer: StreamScorer) -> None:
    """Compile what learning needs, and before it what needs no learner.

    Meanwhile the helper compiles the evaluation, which is a part of learning.
    """
    rows, mass = _rows(FEWEST_FIELDS)[:40], TailMass()
    mass.update(rows, len(rows))
    mass.log_mass(rows)
    scorer.learner.untrained().partial_fit(rows)


def _help(scorer: StreamScorer) -> None:
    """Compile what scoring needs, and first the evaluation, which learning needs, too."""
    rows, learner = _rows(FEWEST_FIELDS), scorer.learner.untrained()
    learner.partial_fit(rows[:40])
    learner.evaluate(rows)
    learner.given_others(rows)
    _run(scorer)


def _rows(n_fields: int) -> FloatArray:
    rows = np.random.default_rng(0).normal(20.0, size=(1500, n_fields))  # all have a logarithm
    rows[:, 1] += rows[:, 0]
    rows[5::100, 2] = rows[7::100, 0] = np.nan
    rows[[700, 900], 1] += [8.0, -8.0]
    rows[900, 2] = np.nan
    return rows


class Beginner(OSLRAU):
    """The network with which learning begins: all kernels of `OSLRAU` but those that learn."""

    def _learn(self, *_: Any) -> None: ...


class _Compilation(event.Listener):
    """Tells of progress, and has a second process fill the same cache if something is not in it."""

    def __init__(self, scorer: StreamScorer, told: Told | None) -> None:
        self._state, self._told = scorer.to_bytes(), told
        self._done: set[str] = set()
        self._needed = _n_needed(scorer)
        self._began = (os.cpu_count() or 1) == 1  # a helper would take the only processor
        self._helper: subprocess.Popen[bytes] | None = None

    def on_start(self, _: event.Event) -> None:
        if not self._began:
            self._began = True
            with suppress(OSError):  # without a helper it takes longer
                self._begin()

    def _begin(self) -> None:
        command, nothing = [sys.executable, "-m", __name__], subprocess.DEVNULL
        self._helper = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=nothing
        )
        os.set_blocking(cast(IO[bytes], self._helper.stdout).fileno(), False)
        its_input = cast(IO[bytes], self._helper.stdin)
        its_input.write(len(self._state).to_bytes(_SIZE_BYTES, "big") + self._state)
        its_input.flush()  # and left open: its end tells the helper that nobody waits any more

    def on_end(self, done: event.Event) -> None:
        name = _kernel_name(done)
        if name is not None and self._told is not None:
            self._done |= {name, *self._told_by_helper()}
            self._told(len(self._done), max(len(self._done), self._needed))

    def _told_by_helper(self) -> list[str]:
        """Return which kernels the helper has compiled since it was last asked."""
        if self._helper is not None:
            with suppress(BlockingIOError):  # none
                output = cast(IO[bytes], self._helper.stdout).fileno()
                return os.read(output, _MOST_BYTES).decode().split()
        return []

    def stop(self) -> None:
        if self._helper is not None:
            self._helper.kill()
            self._helper.communicate()


class _Report(event.Listener):
    """Tells the process that is helped which kernels are compiled, in a line each."""

    def on_start(self, _: event.Event) -> None: ...

    def on_end(self, done: event.Event) -> None:
        name = _kernel_name(done)
        if name is not None:
            print(name, flush=True)


def _kernel_name(done: event.Event) -> str | None:
    """Return what was compiled; None unless it is a kernel, but a function of numba's own."""
    kernel = done.data["dispatcher"]
    if not isinstance(kernel, Kernel):
        return None
    return f"{kernel.py_func.__module__}.{kernel.py_func.__name__}"


def _n_needed(scorer: StreamScorer) -> int:
    """Return about how many kernels a scorer needs."""
    folders = {"vector", "scoring", "stream", "density", "network", "algorithm", "queries"}
    if scorer.parameters["max_entities"] is not None:
        folders.add("entities")
    return sum(kernel.folder in folders for kernel in KERNELS)


@contextmanager
def _watched(compilation: _Compilation) -> Iterator[None]:
    try:
        with event.install_listener("numba:compile", compilation):
            yield
    finally:
        compilation.stop()


@contextmanager
def _no_collection() -> Iterator[None]:
    """Save a tenth of the time: the compiler makes millions of objects and few cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _end_with_input(stream: IO[bytes]) -> None:
    """Let the process end when its input does, also if the parent was killed."""

    def wait() -> None:
        stream.read()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    size = int.from_bytes(sys.stdin.buffer.read(_SIZE_BYTES), "big")
    given = StreamScorer.from_bytes(sys.stdin.buffer.read(size), Beginner)
    _end_with_input(sys.stdin.buffer)
    with event.install_listener("numba:compile", _Report()):
        _help(given)
