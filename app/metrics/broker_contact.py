"""Records when the broker last answered."""

from __future__ import annotations

import math
import time


class BrokerContact:
    """Measures the time since the broker's last answer."""

    def __init__(self) -> None:
        self._answered = math.nan

    def mark_answer(self) -> None:
        """Record an answer, or the first request."""
        self._answered = time.monotonic()

    @property
    def silent_seconds(self) -> float:
        """Time since the last answer; NaN before the first request."""
        return time.monotonic() - self._answered
