"""The demonstration: a broker, a worker, made-up machines, and an account of every record."""
