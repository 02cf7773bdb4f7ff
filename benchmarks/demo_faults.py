"""The demo's machines scored offline: which of the injected anomalies are found."""

from __future__ import annotations

from itertools import islice

import numpy as np
import orjson
from numpy.typing import NDArray

from faust_oslrau.app.demo.faults import FAULTS, MALFORMATIONS, OTHER_MACHINE
from faust_oslrau.app.demo.feed import sensor_messages
from faust_oslrau.app.demo.sensors import FIELDS
from faust_oslrau.learner import OSLRAU, StreamScorer

from .datasets import Array

PARTITIONS = 4
RATES = (0.001, 0.01)

Row = dict[str, object]


def found_by_kind(n: int) -> list[Row]:
    """Tell, for each kind of anomaly among ``n`` messages, the shares that are flagged.

    The last row has the shares of the flagged records that are injected.
    """
    labels, p_values = scored(n)
    kinds = [kind for kind in FAULTS if kind != OTHER_MACHINE]  # these machines are alike
    rows = [found(kind, labels == kind, p_values) for kind in kinds]
    injected = labels != ""
    precision: Row = {"kind": "precision", "records": int(np.count_nonzero(injected))}
    for rate in RATES:
        precision[f"at {rate}"] = share(injected[p_values <= rate])
    return [*rows, found("recall", injected, p_values), precision]


def found(kind: str, chosen: NDArray[np.bool_], p_values: Array) -> Row:
    shares = {f"at {rate}": share(p_values[chosen] <= rate) for rate in RATES}
    return {"kind": kind, "records": int(np.count_nonzero(chosen)), **shares}


def share(flags: NDArray[np.bool_]) -> float | None:
    return round(float(flags.mean()), 3) if len(flags) else None


def scored(n: int) -> tuple[NDArray[np.str_], Array]:
    """Score well-formed messages partition by partition; return their labels and p-values."""
    parts = partitions(n, seed=0)
    p_values = [StreamScorer(OSLRAU()).process(rows).p_value for _, rows in parts]
    return np.concatenate([labels for labels, _ in parts]), np.concatenate(p_values)


def partitions(n: int, seed: int) -> list[tuple[list[str], Array]]:
    """Return labels (m,) and rows (m, 12) of each partition's well-formed ones of ``n`` messages.

    The label of a usual record is empty.
    """
    labels: list[list[str]] = [[] for _ in range(PARTITIONS)]
    rows: list[list[list[float]]] = [[] for _ in range(PARTITIONS)]
    for message in islice(sensor_messages(PARTITIONS, seed), n):
        if message.label not in MALFORMATIONS and message.value is not None:
            labels[message.partition].append(message.label or "")
            rows[message.partition].append(reading(message.value))
    return [*zip(labels, map(np.array, rows), strict=True)]


def reading(value: bytes) -> list[float]:
    """Take the fields out of a message, NaN where they are missing."""
    document = orjson.loads(value)
    return [at(document, path.split(".")) for path in FIELDS]


def at(document: dict[str, object], path: list[str]) -> float:
    inner: object = document
    for name in path:
        inner = inner.get(name) if isinstance(inner, dict) else None
    return np.nan if inner is None else float(str(inner))
