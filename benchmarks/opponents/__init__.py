"""Densities and detectors that the learner is compared with, where no library has them ready."""
