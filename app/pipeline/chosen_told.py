"""Says in words which fields a partition has chosen."""

from __future__ import annotations

from faust_oslrau.topics.fields import listed

from .pipeline import PartitionPipeline


def chosen_told(pipeline: PartitionPipeline) -> str:
    """Return which fields the first records have chosen, and which they leave out."""
    fields = pipeline.fields or ()
    others = [*pipeline.left_out, *(f"{name} (hardly any value)" for name in pipeline.sparse)]
    unfit = f"; {pipeline.n_unfit} of them do not fit and are not learned" * (pipeline.n_unfit > 0)
    return (
        f"the first records choose {len(fields)} fields: {listed(fields)}; "
        f"they leave out {listed(others) or 'none'}{unfit}"
    )
