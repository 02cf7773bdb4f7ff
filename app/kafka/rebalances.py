"""What Faust tells of its consumer group, as far as it is true of a scoring worker.

Faust counts a message or event for each batch, commits and sends nothing on the source topics, and
names offsets like counts. Its rebalances are rebalances.
"""

from __future__ import annotations

import logging
from typing import Any

from faust import Sensor
from prometheus_client import Counter


class RebalanceSensor(Sensor):
    """Counts the rebalances that a worker takes part in."""

    logger = logging.getLogger("faust")  # it is a service, whose start Faust logs

    def __init__(self, rebalances: Counter) -> None:
        super().__init__()
        self._rebalances = rebalances

    def on_rebalance_start(self, app: Any) -> dict[Any, Any]:
        """Count it; Faust hands the empty state back when it ends."""
        self._rebalances.inc()
        return {}
