"""Settings that earlier versions had, and what to write instead."""

from __future__ import annotations

FORMER = {
    "learner.tree_nodes": "leave it out, oSLRAU's network is a kind of its own: learner.kind",
    "stretches": "leave it out, incidents gather small deviations that last, and history shows "
    "those that only their past makes unusual",
}
"""What to write instead of each, by its name."""
