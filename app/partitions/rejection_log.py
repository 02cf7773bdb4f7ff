"""What the log says of rejected records: the first ones, then how many, by reason."""

from __future__ import annotations

import logging
import time
from collections import Counter

from faust_oslrau.app.logs import at
from faust_oslrau.app.pipeline import ProcessedBlock
from faust_oslrau.topics import OutMessage

logger = logging.getLogger(__name__)

FIRST = 3
"""Rejections that get a line each, until a whole interval passes without any."""

INTERVAL_SECONDS = 60.0
"""How often the others are summed up."""


class RejectionLog:
    """Logs the rejections of one partition; a broken producer must not flood the log."""

    def __init__(self, tp: tuple[str, int]) -> None:
        self._tp = tp
        self._room = FIRST
        self._others: Counter[str] = Counter()
        self._began: float | None = None

    def add(self, block: ProcessedBlock) -> None:
        """Log the rejections of a block, or count them."""
        if not block.dead_letters:
            return
        if self._began is None:
            self._began = time.monotonic()
        told = block.dead_letters[: self._room]
        self._room -= len(told)
        self._others += block.reasons
        for message in told:
            self._others[self._tell(message)] -= 1

    def summarize(self, *, now: bool = False) -> None:
        """Log how many there were beyond the first ones, once an interval or `now`."""
        if self._began is None:
            return
        seconds = time.monotonic() - self._began
        if seconds < INTERVAL_SECONDS and not now:
            return
        others = +self._others
        if others:
            reasons = ", ".join(f"{reason} {count}" for reason, count in others.most_common())
            place = (*self._tp, others.total(), seconds, reasons)
            about = at(self._tp, records=others.total(), reasons=dict(others))
            logger.warning("%s/%d: %d more records rejected in %.0f s: %s", *place, extra=about)
        self._others.clear()
        self._began = time.monotonic() if others else None
        self._room = 0 if others else FIRST

    def _tell(self, message: OutMessage) -> str:
        headers = dict(message.headers)  # ours are the last of their names
        reason, detail = (headers[f"oslrau-{name}"].decode() for name in ("reason", "detail"))
        about = at(self._tp, message.offset, reason=reason)
        place = (*self._tp, message.offset, reason, detail)
        logger.warning("%s/%d: record at %d rejected, %s: %s", *place, extra=about)
        return reason
