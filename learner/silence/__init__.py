"""Records that do not come: entities and partitions that are silent for longer than they were."""
