"""Says in words which fields a partition has chosen, and which it leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .pipeline import PartitionPipeline

_MOST_NAMES = 20


class FieldChoice:
    """Says each thing once, as records come; nothing of fields that the settings choose.

    Attributes
    ----------
    ignored
        The fields that are left out since some records.
    """

    def __init__(self, pipeline: PartitionPipeline) -> None:
        self.ignored: list[str] = pipeline.ignored
        self._pipeline = pipeline
        self._said = pipeline.fields is not None  # by the settings, or by a snapshot

    def news(self) -> Iterator[str]:
        """Yield a line for each thing that was not said yet."""
        fields = self._pipeline.fields
        if fields is not None and not self._said:
            self._said = True
            left_out = listed(self._pipeline.left_out) or "none"
            yield (
                f"the first valid record chooses {len(fields)} fields: {listed(fields)}; "
                f"it leaves out {left_out}"
            )
        new = [field for field in self._pipeline.ignored if field not in self.ignored]
        self.ignored = self._pipeline.ignored
        if new:
            yield (
                "left out from now on, as their values only grow or hardly ever come again: "
                f"{listed(new)}"
            )


def listed(names: Sequence[str]) -> str:
    """Return the first names as a text, with the number of the others."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more
