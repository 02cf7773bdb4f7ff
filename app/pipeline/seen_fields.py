"""Which fields have had a value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .block import ProcessedBlock


class SeenFields:
    """The fields of records, and whether any record had a value of them."""

    def __init__(self) -> None:
        self.records = 0
        self._has_values: dict[str, bool] = {}

    def add(self, fields: Sequence[str] | None, block: ProcessedBlock) -> None:
        """Look at the rows of `fields`, and at other fields of settings."""
        self.records += len(block.rows)
        for field, column in zip(fields or (), block.rows.T, strict=True):
            if not self._has_values.get(field):
                self._has_values[field] = bool((~np.isnan(column)).any())
        for field, has_values in block.context.items():
            self._has_values[field] = has_values or self._has_values.get(field, False)

    @property
    def empty(self) -> list[str]:
        """The fields without a value in any record: their names may be misspelt."""
        return [field for field, has_values in self._has_values.items() if not has_values]
