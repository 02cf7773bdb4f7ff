"""The partitions that a worker holds: opened, processed, committed, saved, given up."""
