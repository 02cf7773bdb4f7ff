"""Benchmarks of the learner: the paper's tables, baselines and speed."""
