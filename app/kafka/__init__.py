"""How a worker talks to Kafka: reading, writing, transactions, topics, access."""
