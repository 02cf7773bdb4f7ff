"""Shares of a learner's networks that follow each record: what the last records say of the next."""
