"""The kinds of learner by their names in the settings."""

from __future__ import annotations

from collections.abc import Mapping

from faust_oslrau.learner import OSLRAU, StackedSPN

LEARNERS: Mapping[str, type[OSLRAU] | type[StackedSPN]] = {"oslrau": OSLRAU, "stacked": StackedSPN}
"""Their parameters are those of `LearnerSettings`."""
