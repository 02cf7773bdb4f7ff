"""The demo: a broker, a worker, simulated machines, and an account of every record."""
