"""A worker's assigned partitions: opening, processing, commits, snapshots, revocation."""
