"""The pages and endpoints on a worker's web port."""
