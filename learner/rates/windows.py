"""Kernel that tells in which window of a partition's time each record falls."""

from __future__ import annotations

from faust_oslrau.learner.silence.clock import TIME, latest, tick
from faust_oslrau.learner.vector.compiler import Array, kernel


@kernel
def fill_windows(places: Array, clock: Array, length: int, windows: Array) -> None:
    """Fill ``windows`` (m,) with numbers of windows, -1 as long as there is no time.

    ``places`` (m, 3) are numbers, offsets and time stamps of records, ``length`` the milliseconds
    of a window. Records that come late count when they come.
    """
    for row in range(len(windows)):
        tick(clock, places[row, 1], places[row, 2])
        now = clock[latest(clock), TIME]
        windows[row] = -1 if now < 0 else now // length
