"""The scores of one log under one set of settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from time import process_time
from typing import Any, Self

import numpy as np
import orjson
from numpy.typing import NDArray

from faust_oslrau.app.errors import SettingsError
from faust_oslrau.app.pipeline import ProcessedBlock, SeenFields
from faust_oslrau.app.settings import Settings
from faust_oslrau.learner.stream import WARM_UP
from faust_oslrau.topics import KafkaRecord, OutMessage

from .kernels import compile_kernels
from .log_schemas import LogSchemas
from .replay import Pipelines, Tell

# Fields that are listed of each alarm.
_MOST_BLAMED = 3


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of n records of one partition after its warm-up, arrays (n,) in its order.

    Attributes
    ----------
    offset
        Offsets in the partition's log.
    log_likelihood
        Log-densities in nats.
    p_value
        Probabilities, NaN where unknown.
    is_alarm
        Whether the record is an anomaly in its score message.
    """

    offset: NDArray[np.int64]
    log_likelihood: NDArray[np.float64]
    p_value: NDArray[np.float64]
    is_alarm: NDArray[np.bool_]

    def take(self, chosen: NDArray[np.int64]) -> Self:
        """Return the scores at some positions."""
        return type(self)(*(getattr(self, entry.name)[chosen] for entry in fields(self)))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the scores of several blocks or partitions."""
        return cls(*(np.concatenate([getattr(p, e.name) for p in parts]) for e in fields(cls)))


class ScoredLog:
    """Scores a log with one pipeline for each partition, and keeps the scores.

    Parameters
    ----------
    name
        What reports call the settings.
    settings
        The settings of a worker.
    schemas
        Those of the records; None for JSON.
    tell
        Hears of the fields; None for nobody.

    Raises
    ------
    SettingsError
        Learning is off: without a model, there would be no scores.
    """

    def __init__(
        self,
        name: str,
        settings: Settings,
        schemas: LogSchemas | None = None,
        tell: Tell | None = None,
    ) -> None:
        if not settings.learning:
            raise SettingsError(f"{name}: expected learning = true, as no model is learned yet")
        compile_kernels(settings)
        self.name = name
        self.settings = settings
        self.records = 0
        self.rejected: Counter[str] = Counter()
        self.first_rejection: str | None = None
        self.cpu_seconds = 0.0
        self.blamed: dict[tuple[int, int], tuple[str, ...]] = {}
        """Fields with more than their usual nats, of each alarm by partition and offset."""
        self._pipelines = Pipelines(settings, schemas, tell)
        self._blocks: dict[int, list[Scores]] = {}
        self._scored: Counter[int] = Counter()
        self._seen = SeenFields()

    def process(self, records: Sequence[KafkaRecord]) -> None:
        """Score the next records of one partition."""
        partition = records[0].partition
        began = process_time()
        block = self._pipelines.process(records)
        self.cpu_seconds += process_time() - began
        self.records += len(records)
        self.rejected += block.reasons
        self.first_rejection = self.first_rejection or block.first_rejection
        warming_up = max(0, WARM_UP - self._scored[partition])
        self._scored[partition] += len(block.scores)
        scores = self._scores(block).take(np.arange(warming_up, len(block.scores)))
        self._blocks.setdefault(partition, []).append(scores)
        self._keep_blamed(partition, scores, block.scores[warming_up:])
        self._seen.add(self.fields(records), block)

    def _scores(self, block: ProcessedBlock) -> Scores:
        offsets, anomalies = (
            np.array([message.offset for message in messages], np.int64)
            for messages in (block.scores, block.anomalies)
        )
        return Scores(offsets, block.log_likelihood, block.p_value, np.isin(offsets, anomalies))

    def _keep_blamed(self, partition: int, scores: Scores, messages: list[OutMessage]) -> None:
        for position in np.flatnonzero(scores.is_alarm).tolist():
            message = messages[position]
            listed = orjson.loads(message.value or b"").get("contributions", [])
            names = [entry["field"] for entry in listed if entry["nats"] > entry["usual"]]
            self.blamed[partition, message.offset] = tuple(names[:_MOST_BLAMED])

    @property
    def scores(self) -> dict[int, Scores]:
        """The scores of each partition after its warm-up, in order of partitions."""
        return {p: Scores.joined(blocks) for p, blocks in sorted(self._blocks.items())}

    @property
    def empty_fields(self) -> list[str]:
        """The fields without a value in any scored record: their names may be misspelt."""
        return self._seen.empty

    @property
    def scored(self) -> int:
        """The number of scored records, warm-up included."""
        return self._scored.total()

    @property
    def alarms(self) -> int:
        """The number of alarms after the warm-up."""
        return len(self.blamed)

    @property
    def microseconds(self) -> float:
        """CPU time per record to decode, score, learn and encode."""
        return 1e6 * self.cpu_seconds / max(1, self.records)

    def as_dict(self) -> dict[str, Any]:
        """Return the counts and times as plain data."""
        return {
            "settings": self.name,
            "records": self.records,
            "scored": self.scored,
            "rejected": dict(self.rejected),
            "empty_fields": self.empty_fields,
            "alarms": self.alarms,
            "microseconds": self.microseconds,
        }

    def fields(self, records: Sequence[KafkaRecord]) -> tuple[str, ...] | None:
        """Return the scored fields of the partition that the records belong to."""
        return self._pipelines.of(records).fields
