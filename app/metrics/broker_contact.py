"""For how long the broker has not answered."""

from __future__ import annotations

import math
import time


class BrokerContact:
    """Remembers when the broker last answered."""

    def __init__(self) -> None:
        self._answered = math.nan

    def mark_answer(self) -> None:
        """Take note of an answer, or of the first question."""
        self._answered = time.monotonic()

    @property
    def silent_seconds(self) -> float:
        """Time since the last answer, NaN before the first question."""
        return time.monotonic() - self._answered
