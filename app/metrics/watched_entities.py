"""The records of the entities that somebody looks at: nothing is kept of the others."""

from __future__ import annotations

import numpy as np

from faust_oslrau.app.pipeline import ProcessedBlock
from faust_oslrau.learner import Forecast
from faust_oslrau.learner.scoring.incidents import LONGEST_NAME

from .sampled_rows import SampledRows

# Most entities of a partition at a time, and how long nobody has asked for one that is forgotten.
_MOST = 8
_FORGOTTEN_AFTER_SECONDS = 60


class WatchedEntities:
    """One record of each second of the entities that readers of the page have chosen.

    Parameters
    ----------
    seconds
        The most seconds that are retained.
    """

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        self._rows: dict[bytes, SampledRows] = {}
        self._asked: dict[bytes, int] = {}

    def watch(self, key: bytes, now: int, sampled: SampledRows) -> SampledRows:
        """Return the records of an entity since it is watched, and watch it on.

        Before, they are those among the `sampled` ones of its partition.
        """
        if key not in self._rows:
            if len(self._rows) == _MOST:
                self._forget(min(self._asked, key=self._asked.__getitem__))
            self._rows[key] = sampled.of(key)
        self._asked[key] = now
        return self._rows[key]

    def add(self, now: int, block: ProcessedBlock) -> None:
        """Add the records of a block that are of watched entities."""
        for key, asked in list(self._asked.items()):
            if now - asked > _FORGOTTEN_AFTER_SECONDS:
                self._forget(key)
                continue
            at = np.array([i for i, other in enumerate(block.keys) if other == key], np.intp)
            has_anomalies = len(at) > 0 and _name(key) in block.alarming
            forecast = block.forecast
            if forecast is not None:
                forecast = Forecast(*(part[at] for part in forecast))
            self._rows[key].add(
                now,
                block.rows[at],
                block.p_value[at],
                has_anomalies=has_anomalies,
                forecast=forecast,
            )

    def _forget(self, key: bytes) -> None:
        del self._rows[key], self._asked[key]


def _name(key: bytes) -> str:
    """Return the name of an entity as blocks have it."""
    return key[:LONGEST_NAME].decode(errors="replace")
