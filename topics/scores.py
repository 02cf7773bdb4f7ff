"""Encodes scores and anomalies as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import orjson
from numpy.typing import NDArray

_TEMPLATE = (
    b'{"topic":%b,"partition":%d,"offset":%%b,"timestamp":%%b,"log_likelihood":%%b,'
    b'"p_value":%%b,%%b'
)
_FORECAST = b'{"field":%b,"expected":%%b,"low":%%b,"high":%%b}'
_BOOLEANS = (b"false", b"true")
_END = b'"is_anomaly":%b,"n_learned":%d,"warming_up":%b}'


MOST_BLAMED = 16
"""The most fields that an anomaly lists; a record may have a thousand."""


class Blame(Protocol):
    """The fields of k anomalous records, arrays (k, d); `learner.Blame` implements it.

    All but `order` and `n_blamed` matter for the fields to blame only.
    """

    @property
    def order(self) -> NDArray[np.int64]:
        """Column numbers, the most to blame first."""

    @property
    def n_blamed(self) -> NDArray[np.int64]:
        """Number of fields to blame (k,), the first ones of `order`."""

    @property
    def value(self) -> NDArray[np.float64]:
        """The record's value."""

    @property
    def nats(self) -> NDArray[np.float64]:
        """-log p(field | the fields that are not to blame)."""

    @property
    def usual(self) -> NDArray[np.float64]:
        """The average of the nats."""

    @property
    def expected(self) -> NDArray[np.float64]:
        """Mean of the field given the fields that are not to blame."""

    @property
    def deviation(self) -> NDArray[np.float64]:
        """Standard deviation of the field given the fields that are not to blame."""

    @property
    def extrapolated(self) -> NDArray[np.bool_]:
        """Whether the mean is outside the range of the field's values so far."""


@dataclass(frozen=True, slots=True)
class Columns:
    """What the columns of rows are.

    Attributes
    ----------
    fields
        Their names.
    n_categories
        How many of them, the last ones, are categories.
    texts
        The texts of categories by their codes.
    """

    fields: Sequence[str] = ()
    n_categories: int = 0
    texts: Mapping[float, str] = field(default_factory=dict)

    @property
    def numbers(self) -> Sequence[str]:
        """The names of the columns that are numbers."""
        return self.fields[: len(self.fields) - self.n_categories]


class Forecast(Protocol):
    """What was expected of each field of m records; `learner.Forecast` implements it."""

    @property
    def expected(self) -> NDArray[np.float64]:
        """(m, d) means; NaN if unknown."""

    @property
    def low(self) -> NDArray[np.float64]:
        """(m, d) quantiles at 1 %."""

    @property
    def high(self) -> NDArray[np.float64]:
        """(m, d) quantiles at 99 %."""


class Scores(Protocol):
    """The scores of m records, k of them anomalous; `learner.ScoredBlock` implements it."""

    @property
    def log_likelihood(self) -> NDArray[np.float64]:
        """(m,) natural logarithm of the density; NaN without a model."""

    @property
    def p_value(self) -> NDArray[np.float64]:
        """(m,) share of recent records at least as unusual; NaN if unknown."""

    @property
    def is_anomaly(self) -> NDArray[np.bool_]:
        """(m,) whether the p-value is at most the alarm rate."""

    @property
    def n_learned(self) -> NDArray[np.int64]:
        """(m,) number of records that the model had learned."""

    @property
    def warming_up(self) -> NDArray[np.bool_]:
        """(m,) whether the record is among the first of its partition."""

    @property
    def blame(self) -> Blame:
        """The fields of the k anomalous records."""

    @property
    def forecast(self) -> Forecast | None:
        """What was expected of the records, if that is asked for."""


def encode_scores(
    topic: str,
    partition: int,
    offsets: Sequence[int],
    timestamps: Sequence[int | None],
    scores: Scores,
    columns: Columns,
) -> list[bytes]:
    """Return one JSON object for each record; NaN becomes null.

    An anomalous one ends with `contributions`: its fields to blame, the most unusual first.
    """
    if not offsets:
        return []
    template = _TEMPLATE % (orjson.dumps(topic).replace(b"%", b"%%"), partition)
    members = zip(
        _texts([*offsets]),
        _texts(timestamps),
        _texts(scores.log_likelihood),
        _texts(scores.p_value),
        _ends(scores),
        strict=True,
    )
    messages = [template % row for row in members]
    if scores.forecast is not None:
        messages = _with_forecasts(messages, scores.forecast, columns.numbers)
    _add_contributions(messages, scores, columns)
    return messages


def _with_forecasts(
    messages: Sequence[bytes], forecast: Forecast, fields: Sequence[str]
) -> list[bytes]:
    entries = [_FORECAST % orjson.dumps(field).replace(b"%", b"%%") for field in fields]
    template = b'%%b,"forecast":[%b]}' % b",".join(entries)
    d = len(fields)
    numbers = np.stack(
        [part[:, :d] for part in (forecast.expected, forecast.low, forecast.high)], 2
    )
    texts, width = _texts(numbers.ravel()), 3 * len(fields)
    return [template % (message[:-1], *texts[i * width : (i + 1) * width])
            for i, message in enumerate(messages)]  # fmt: skip


def encode_anomaly(score: bytes, value: bytes) -> bytes:
    """Return the score message with the record's JSON object, byte for byte, as `record`."""
    return _extended(score, "record", value)


def _extended(message: bytes, name: str, content: bytes) -> bytes:
    """Return the non-empty JSON object `message` with one more member; `content` is JSON."""
    return b'%b,"%b":%b}' % (message[:-1], name.encode(), content)


def _add_contributions(messages: list[bytes], scores: Scores, columns: Columns) -> None:
    for row, position in enumerate(scores.is_anomaly.nonzero()[0].tolist()):
        listed = orjson.dumps(contributions(scores.blame, row, columns))
        messages[position] = _extended(messages[position], "contributions", listed)


def contributions(blame: Blame, row: int, columns: Columns) -> list[dict[str, Any]]:
    """Return the fields to blame of a row of `blame`, the most unusual first."""
    listed = min(int(blame.n_blamed[row]), MOST_BLAMED)
    return [_contribution(blame, row, at, columns) for at in blame.order[row, :listed].tolist()]


def _contribution(blame: Blame, row: int, at: int, columns: Columns) -> dict[str, Any]:
    named, value = columns.fields[at], float(blame.value[row, at])
    nats, usual = float(blame.nats[row, at]), float(blame.usual[row, at])
    expected = float(blame.expected[row, at])
    if at < len(columns.numbers):
        return {
            "field": named,
            "nats": nats,
            "usual": usual,
            "value": value,
            "expected": expected,
            "deviation": float(blame.deviation[row, at]),
            "extrapolated": bool(blame.extrapolated[row, at]),
        }
    return {
        "field": named,
        "nats": nats,
        "usual": usual,
        "category": columns.texts.get(value),
        "expected_category": columns.texts.get(expected),
    }


def _texts(column: Any) -> list[bytes]:
    """Return each entry of a column as JSON; one call is much faster than one for each."""
    return orjson.dumps(column, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].split(b",")


def _ends(scores: Scores) -> Iterator[bytes]:
    """Yield the end of each object; few differ, as models learn many records at a time."""
    codes = (4 * scores.n_learned + 2 * scores.is_anomaly + scores.warming_up).tolist()
    ends = {
        code: _END % (_BOOLEANS[code >> 1 & 1], code >> 2, _BOOLEANS[code & 1])
        for code in set(codes)
    }
    return map(ends.__getitem__, codes)
