"""Logs once a minute what a worker has done."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.app.metrics.partition import PartitionMetrics

logger = logging.getLogger(__name__)


class Activity:
    """What the partitions have done since the last line of the log."""

    def __init__(self) -> None:
        self._before: dict[PartitionMetrics, NDArray[np.int64]] = {}

    def tell(self, partitions: Iterable[PartitionMetrics]) -> None:
        """Log the numbers of records, anomalies and incidents, if records have come."""
        now = {of: _counts(of) for of in partitions}
        done = [counts - self._before.get(of, 0) for of, counts in now.items()]
        scored, anomalies, rejected = np.sum(done, axis=0) if done else (0, 0, 0)
        self._before = now
        if scored or rejected:
            logger.info(
                "in the last minute: %d records scored, %d anomalies, %d rejected; open incidents: "
                "%d, unread records: %d",
                *(scored, anomalies, rejected),
                sum(len(of.open) for of in now),
                sum(of.lag or 0 for of in now),
            )


def _counts(of: PartitionMetrics) -> NDArray[np.int64]:
    return np.array([of.records["scored"], of.anomalies, of.records["rejected"]])
