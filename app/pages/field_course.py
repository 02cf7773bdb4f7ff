"""The course of one field of a partition: its values and what the model expects of them."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from faust_oslrau.app.metrics.history import SECONDS
from faust_oslrau.app.partitions.held_partition import HeldPartition

# Names of fields to choose from; a record may have a thousand.
_MOST_FIELDS = 1000
# Half the width of the band, in standard deviations: it holds 95 % of a Gaussian's values.
_HALF_WIDTH = 2.0


async def field_course(
    partition: HeldPartition, field: str | None, since: int, entity: str | None = None
) -> dict[str, Any] | None:
    """Return the course of a field since a moment in seconds since 1970, as far as it is known.

    One record of each second counts. With forecasts, `expected_low` and `expected_high` are the
    quantiles at 1 % and 99 % that were expected before the record came. Without them, they are two
    standard deviations below and above what the present model expects, given the fields of the
    record that are not to blame. With an `entity`, the records are its own, and without forecasts
    the band is the forecast of its next record, which `is_of_next` says; None if the partition does
    not know it. NaN stands for what is not known. Without a `field`, only the names are returned.
    """
    foreseen = None if entity is None else await partition.entity_forecast(entity)
    if entity is not None and foreseen is None:
        return None
    fields = partition.pipeline.numbers
    until = int(time.time())
    since = min(max(since, until - SECONDS), until)
    answer: dict[str, Any] = {"since": since, "until": until, "fields": fields[:_MOST_FIELDS]}
    if field not in fields:
        return answer
    column, history = fields.index(field), partition.metrics.history
    kept = history.rows if entity is None else history.rows_of(entity)
    sampled = list(kept.between(since, until))
    width = len(partition.pipeline.fields or ())
    rows = np.array([row.values for row in sampled]).reshape(len(sampled), width)
    bands = [row.band for row in sampled if row.band is not None]
    if bands:  # then every record has one
        band = np.stack(bands)
        expected = band[:, 0], band[:, 1]
    elif foreseen is not None:
        expected = foreseen.low, foreseen.high
    else:
        expected = await partition.expected_range(rows, _HALF_WIDTH)
    low, high = (np.broadcast_to(bound, rows.shape) for bound in expected)
    return {
        **answer,
        "times": [row.time for row in sampled],
        "values": rows[:, column].tolist(),
        "expected_low": low[:, column].tolist(),
        "expected_high": high[:, column].tolist(),
        "is_of_next": foreseen is not None and not bands,
        "is_anomaly": [row.is_anomaly for row in sampled],
    }
