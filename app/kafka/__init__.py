"""Kafka clients of a worker: consumer, producers, transactions, topics, access."""
