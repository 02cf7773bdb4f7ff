"""Compiles the kernels before records are scored, as a worker does."""

from __future__ import annotations

from faust_oslrau.app.pipeline import compile_pipeline
from faust_oslrau.app.settings import Settings

from .progress import progress


def compile_kernels(settings: Settings) -> None:
    """Compile what pipelines with these settings need, or load it, and show how far that is."""
    with progress("compiled", "kernels, once for this version") as report:
        compile_pipeline(settings, lambda done, needed: report(done, done / needed))
