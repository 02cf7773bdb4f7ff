"""Fetches Kafka's jars in advance: `python -m faust_oslrau.app.brokers`."""

from __future__ import annotations

import sys

from faust_oslrau.app.errors import BrokerError

from .jars import find_java, kafka_jars

try:
    find_java()
    print(f"Kafka's jars are in {kafka_jars()}")
except BrokerError as error:
    sys.exit(f"note: {error}")
