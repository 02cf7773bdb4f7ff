"""Kafka brokers for demonstrations and tests: a real Apache Kafka and an embedded stand-in."""

from .embedded import EmbeddedBroker
from .real import KafkaBroker

__all__ = ["EmbeddedBroker", "KafkaBroker"]
