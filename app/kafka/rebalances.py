"""Counts the rebalances that Faust reports.

The other values of Faust's sensors would be wrong here: they count batches as messages, and miss
the worker's own commits and producers.
"""

from __future__ import annotations

import logging
from typing import Any

from faust import Sensor
from prometheus_client import Counter


class RebalanceSensor(Sensor):
    """Counts the rebalances that a worker takes part in."""

    logger = logging.getLogger("faust")  # Faust logs the start of this service

    def __init__(self, rebalances: Counter) -> None:
        super().__init__()
        self._rebalances = rebalances

    def on_rebalance_start(self, app: Any) -> dict[Any, Any]:
        """Count a rebalance; Faust passes the empty state back at its end."""
        self._rebalances.inc()
        return {}
