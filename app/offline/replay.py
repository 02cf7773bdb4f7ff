"""Scores a log with the worker's pipeline but without a worker."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, Protocol

from faust_oslrau.app.pipeline import (
    Epoch,
    Epochs,
    PartitionPipeline,
    ProcessedBlock,
    SeenFields,
    chosen_told,
    earlier_settings,
    initial_digest,
    new_pipeline,
)
from faust_oslrau.app.settings import Settings
from faust_oslrau.learner.stream import WARM_UP
from faust_oslrau.topics import KafkaRecord, OutMessage
from faust_oslrau.topics.formats import Translator

Tell = Callable[[str, str], None]
"""Takes a partition and what it has chosen or left out, in words."""


class Sink(Protocol):
    """A destination of messages."""

    def write(self, messages: Sequence[OutMessage]) -> None:
        """Append messages of one partition, in order."""


@dataclass(slots=True)
class Replayed:
    """The counts of a replay so far."""

    records: int = 0
    scored: int = 0
    anomalies: int = 0
    incidents: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    first_rejection: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the counts as plain data."""
        return {
            "records": self.records,
            "scored": self.scored,
            "anomalies": self.anomalies,
            "incidents": self.incidents,
            "rejected": dict(self.rejected),
            "first_rejection": self.first_rejection,
        }


class Schemas(Protocol):
    """The schemas of records that are not JSON."""

    def translator(self, topic: str, partition: int) -> Translator:
        """Return what makes JSON of the records of a partition."""


class Pipelines:
    """One pipeline for each partition, made when its first records come.

    `schemas` are those of the records; None for JSON. `tell` hears of fields; None for nobody.
    `epochs` are settings that models have had before, by topic and partition.
    """

    def __init__(
        self,
        settings: Settings,
        schemas: Schemas | None = None,
        tell: Tell | None = None,
        epochs: Mapping[tuple[str, int], Epochs] | None = None,
    ) -> None:
        self._settings = settings
        self._schemas = schemas
        self._tell = tell
        self._epochs = dict(epochs or {})
        self._of: dict[tuple[str, int], PartitionPipeline] = {}

    def of(self, records: Sequence[KafkaRecord]) -> PartitionPipeline:
        """Return the pipeline of the partition that the records belong to."""
        tp = (records[0].topic, records[0].partition)
        if tp not in self._of:
            self._begin(tp, self._settings_at(tp, records[0].offset))
        return self._of[tp]

    def _begin(self, tp: tuple[str, int], settings: Settings) -> None:
        self._of[tp] = new_pipeline(*tp, settings)
        if self._schemas is not None:
            self._of[tp].translator = self._schemas.translator(*tp)

    def _settings_at(self, tp: tuple[str, int], offset: int) -> Settings:
        """Return the settings that a partition had at an offset, the first that is replayed."""
        left = [epoch for epoch in self._epochs.get(tp, ()) if epoch.until > offset]
        self._epochs[tp] = tuple(left)
        return self._settings_of(left[0]) if left else self._settings

    def _settings_of(self, epoch: Epoch) -> Settings:
        earlier, model = earlier_settings(epoch.settings, self._settings), self._settings
        same = epoch.settings.get("initial_model") == initial_digest(self._settings)
        return replace(earlier, initial_model=model.initial_model if same else None)

    def pieces(self, records: Sequence[KafkaRecord]) -> Iterator[Sequence[KafkaRecord]]:
        """Yield the next records of one partition in pieces, between which settings change."""
        pipeline = self.of(records)
        tp = pipeline.topic, pipeline.partition
        while epochs := self._epochs.get(tp):
            epoch, *later = epochs
            at = bisect_left(records, epoch.until, key=attrgetter("offset"))
            before, records = records[:at], records[at:]
            if before:
                yield before
            if not records:
                return
            settings = self._settings_of(later[0]) if later else self._settings
            if self._of[tp].takes(settings):
                self._of[tp].change(settings, epoch.until)
            else:  # the worker's had learned other records, from an earlier one on
                self._begin(tp, settings)
            self._epochs[tp] = tuple(later)
        yield records

    def process(self, records: Sequence[KafkaRecord]) -> ProcessedBlock:
        """Score the next records of one partition."""
        pipeline = self.of(records)
        was_choosing = pipeline.is_choosing
        block = pipeline.process(records)
        if was_choosing and not pipeline.is_choosing:
            self._say(pipeline, chosen_told(pipeline))
        return block

    def choose(self, pipeline: PartitionPipeline) -> None:
        """Let a partition choose its fields by fewer records than a worker would."""
        pipeline.choose_fields()
        self._say(pipeline, chosen_told(pipeline))

    def tell_of_few(self) -> None:
        """Tell of partitions that have not chosen their fields yet."""
        for pipeline in self._of.values():
            if pipeline.is_choosing:
                few = f"fields are chosen by {WARM_UP} valid records, there are fewer"
                self._say(pipeline, f"{few}: log-likelihoods and p-values are null")

    def _say(self, pipeline: PartitionPipeline, line: str) -> None:
        if self._tell is not None:
            self._tell(f"{pipeline.topic}/{pipeline.partition}", line)


class Replay:
    """Scores records with one pipeline for each partition.

    Parameters
    ----------
    settings
        The settings of the worker whose scores are reproduced.
    scores, anomalies, dead_letters
        The destinations of the messages of each topic.
    schemas
        Those of the records; None for JSON.
    tell
        Hears of the fields; None for nobody.
    epochs
        Settings that models have had before, by topic and partition.
    """

    def __init__(
        self,
        settings: Settings,
        scores: Sink,
        anomalies: Sink,
        dead_letters: Sink,
        schemas: Schemas | None = None,
        tell: Tell | None = None,
        epochs: Mapping[tuple[str, int], Epochs] | None = None,
    ) -> None:
        self._pipelines = Pipelines(settings, schemas, tell, epochs)
        self._scores = scores
        self._anomalies = anomalies
        self._dead_letters = dead_letters
        self.replayed = Replayed()
        self.seen = SeenFields()

    def process(self, records: Sequence[KafkaRecord]) -> None:
        """Score the next records of one partition."""
        for some in self._pipelines.pieces(records):
            self._process(some)

    def _process(self, records: Sequence[KafkaRecord]) -> None:
        block = self._pipelines.process(records)
        self.seen.add(self._pipelines.of(records).fields, block)
        self._scores.write(block.scores)
        self._anomalies.write(block.alerts)
        self._dead_letters.write(block.dead_letters)
        self.replayed.records += len(records)
        self.replayed.scored += len(block.scores)
        self.replayed.anomalies += len(block.anomalies)
        self.replayed.incidents += block.reached.get("minor", 0)
        self.replayed.rejected += block.reasons
        self.replayed.first_rejection = self.replayed.first_rejection or block.first_rejection

    def finish(self) -> None:
        """Tell what only the end of the log shows."""
        self._pipelines.tell_of_few()
