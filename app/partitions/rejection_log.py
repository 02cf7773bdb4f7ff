"""Logs rejected records: the first ones in a line each, then their number by reason."""

from __future__ import annotations

import logging
import time
from collections import Counter

from faust_oslrau.app.logs import at
from faust_oslrau.app.pipeline import ProcessedBlock
from faust_oslrau.topics import OutMessage

logger = logging.getLogger(__name__)

FIRST = 3
"""Rejections with a line of their own, again after an interval without any rejection."""

INTERVAL_SECONDS = 60.0
"""How often the further rejections are summarized."""


class RejectionLog:
    """Logs the rejections of one partition, so that a broken producer does not flood the log."""

    def __init__(self, tp: tuple[str, int]) -> None:
        self._tp = tp
        self._lines_left = FIRST
        self._unlogged: Counter[str] = Counter()
        self._began: float | None = None

    def add(self, block: ProcessedBlock) -> None:
        """Log the rejections of a block, or count them."""
        if not block.dead_letters:
            return
        if self._began is None:
            self._began = time.monotonic()
        first = block.dead_letters[: self._lines_left]
        self._lines_left -= len(first)
        self._unlogged += block.reasons
        for message in first:
            self._unlogged[self._log(message)] -= 1

    def summarize(self, *, now: bool = False) -> None:
        """Log the number of further rejections, once an interval or `now`."""
        if self._began is None:
            return
        seconds = time.monotonic() - self._began
        if seconds < INTERVAL_SECONDS and not now:
            return
        unlogged = +self._unlogged
        if unlogged:
            reasons = ", ".join(f"{reason} {count}" for reason, count in unlogged.most_common())
            values = (*self._tp, unlogged.total(), seconds, reasons)
            extra = at(self._tp, records=unlogged.total(), reasons=dict(unlogged))
            logger.warning("%s/%d: %d more records rejected in %.0f s: %s", *values, extra=extra)
        self._unlogged.clear()
        self._began = time.monotonic() if unlogged else None
        self._lines_left = 0 if unlogged else FIRST

    def _log(self, message: OutMessage) -> str:
        """Log a dead letter and return its reason."""
        headers = dict(message.headers)  # of equal names the last one counts, which is ours
        reason, detail = (headers[f"oslrau-{name}"].decode() for name in ("reason", "detail"))
        extra = at(self._tp, message.offset, reason=reason)
        values = (*self._tp, message.offset, reason, detail)
        logger.warning("%s/%d: record at %d rejected, %s: %s", *values, extra=extra)
        return reason
