"""Says in words which fields a partition has chosen."""

from __future__ import annotations

from collections.abc import Sequence

from .pipeline import PartitionPipeline

_MOST_NAMES = 20


def chosen_told(pipeline: PartitionPipeline) -> str:
    """Return which fields the first records have chosen, and which they leave out."""
    fields = pipeline.fields or ()
    others = [*pipeline.left_out, *(f"{name} (hardly any value)" for name in pipeline.sparse)]
    unfit = f"; {pipeline.n_unfit} of them do not fit and are not learned" * (pipeline.n_unfit > 0)
    return (
        f"the first records choose {len(fields)} fields: {listed(fields)}; "
        f"they leave out {listed(others) or 'none'}{unfit}"
    )


def listed(names: Sequence[str]) -> str:
    """Return the first names as a text, with the number of the others."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more
