"""Queries on a network: densities, conditionals, samples, and its structure for display."""
