"""What is expected of the fields of records, whether they are unusual or not."""

from __future__ import annotations

import numpy as np

from faust_oslrau.learner.arrays import FloatArray
from faust_oslrau.learner.protocol import Comparable
from faust_oslrau.learner.row_densities import of_rows

from .blame import blame
from .comparison import compare
from .wrong_fields import IsUsual


def expectation(
    learner: Comparable, rows: FloatArray, score: FloatArray, alone: FloatArray, is_usual: IsUsual
) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation (k, d) of each field given others of its row.

    The others are those that are not to blame, if a row (k, d) with this log-density ``score`` (k,)
    is not usual. ``alone`` (k, d) are the nats by which each value exceeds the usual if nothing
    else is known.
    """
    rest, unusual = rows.copy(), ~is_usual(score)
    if unusual.any():
        some = of_rows(learner, unusual)
        found = blame(some, rows[unusual], score[unusual], alone[unusual], is_usual)
        rest[unusual] = np.where(np.isnan(found.nats), rows[unusual], np.nan)
    compared = compare(learner, rest)
    return compared.expected, compared.deviation
