"""Kafka brokers for the demo and tests: a real Apache Kafka, and an embedded mock."""

from .embedded import EmbeddedBroker
from .real import KafkaBroker

__all__ = ["EmbeddedBroker", "KafkaBroker"]
