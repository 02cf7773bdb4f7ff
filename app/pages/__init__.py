"""The pages on a worker's web port."""
