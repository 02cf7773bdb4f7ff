"""Settings that change: a partition's pipeline goes on while its successor learns."""

from __future__ import annotations

import math
from collections.abc import Sequence

from faust_oslrau.app.settings import Settings
from faust_oslrau.learner.scoring.incident import CLOSED, OPENED
from faust_oslrau.learner.scoring.reference import RECENT, SETTLED
from faust_oslrau.learner.state import Extent, Parts
from faust_oslrau.topics import KafkaRecord, OutMessage
from faust_oslrau.topics.formats import Translator

from .block import ProcessedBlock
from .epochs import Change
from .initial_model import new_pipeline
from .pipeline import PartitionPipeline
from .snapshot import (
    Snapshot,
    changed_settings,
    check_settings,
    scoring_settings,
    settings_digest,
)

TAKES_OVER_AFTER = RECENT + SETTLED
"""Records that a successor has to learn: its reference set is full, of settled scores."""

MOST_DAYS = 14
"""Whole days that a successor with seasons has to learn, if as many are known."""

SHARE = 0.9
"""Of the known entities, those that a successor has to know."""

MOST_RECORDS = 10 * TAKES_OVER_AFTER
"""Records after which it waits for no more entities: some never come again."""

BLOCK = 1024
"""Offsets between two at which a successor may take over, whatever records are read together."""


class Successor:
    """A pipeline with changed settings that learns beside a partition's pipeline, to follow it.

    All that it does depends on the records from `start` on alone. So what it scores later is what
    a new deployment with these settings, beginning at `start`, would score.

    Attributes
    ----------
    pipeline
        The pipeline.
    start
        The offset at which it began to learn.
    settings
        The digest of its settings.
    """

    def __init__(self, pipeline: PartitionPipeline, start: int, settings: str) -> None:
        self.pipeline = pipeline
        self.start = start
        self.settings = settings

    @property
    def records_left(self) -> int:
        """How many records it has to learn before it takes over; none with an initial model."""
        learner = self.pipeline.learner
        return max(TAKES_OVER_AFTER - (0 if learner is None else learner.n_records_), 0)

    def learn(
        self, records: Sequence[KafkaRecord], translator: Translator | None
    ) -> ProcessedBlock | None:
        """Score and learn those of the next records that are its own; return what came of them."""
        if translator is not None:
            self.pipeline.translator = translator
        records = [record for record in records if record.offset >= self.start]
        return self.pipeline.process(records) if records else None

    def takes_over(self, former: PartitionPipeline, last: int, offset: int) -> bool:
        """Return whether it follows at an offset, after that of the `last` record."""
        is_between = last >= self.start and last // BLOCK != offset // BLOCK
        return is_between and not self.awaits(former)

    def awaits(self, former: PartitionPipeline) -> dict[str, int]:
        """Return how many `records`, or then `days` and `entities`, it has still to learn.

        It takes over once there are none, to know as much of days and entities as the former one.
        """
        return {"records": self.records_left} if self.records_left > 0 else self._lacks(former)

    def _lacks(self, former: PartitionPipeline) -> dict[str, int]:
        """Return how many of the days and entities of the former one it has still to learn.

        Both see the same days, so that it waits for no more than `MOST_DAYS` of them.
        """
        ours, theirs = self.pipeline.known, former.known
        days = entities = 0
        if ours.time == theirs.time and ours.days is not None and theirs.days is not None:
            known_before = theirs.days - ours.days  # as it began
            days = min(known_before, MOST_DAYS) - ours.days
        if ours.entity == theirs.entity and self.pipeline.n_records < MOST_RECORDS:
            entities = math.ceil(SHARE * theirs.entities) - ours.entities
        return {what: n for what, n in (("days", days), ("entities", entities)) if n > 0}

    def events(self, former: PartitionPipeline, record: KafkaRecord) -> list[OutMessage]:
        """Return what is told as it takes over: incidents of both pipelines, with that record."""
        opened = self.pipeline.told_incidents(OPENED, record)
        return former.told_incidents(CLOSED, record) + opened

    def snapshot_parts(self, next_offset: int, topic_id: str | None) -> Parts | None:
        """Return the bytes of its snapshot in parts, valid until the next record.

        None while it chooses its fields: then it begins anew after a restart.
        """
        if self.pipeline.is_choosing:
            return None
        return self.pipeline.snapshot_parts(self.start, max(self.start, next_offset), topic_id)


def continued(
    snapshot: Snapshot,
    scorer: Extent | None,
    successor: tuple[Snapshot, Extent | None] | None,
    settings: Settings,
    start: int,
) -> tuple[PartitionPipeline, Successor | Change | None]:
    """Return the pipeline of a snapshot, and what is to become of it if settings have changed.

    That is a change of its own settings at `start`, where that can be done, else a successor: that
    of the snapshot if it has the same settings, else one that begins at `start`.

    Raises
    ------
    IncompatibleSnapshotError
        The format of records has changed.
    SettingsError
        The installed version does not know a setting of the snapshot.
    StateError
        The scorer's state is damaged or has another format version.
    """
    if not changes(snapshot, settings):
        return PartitionPipeline.restored(snapshot, settings, scorer), None
    if snapshot.settings.get("format", "json") != settings.format:
        check_settings(snapshot, settings)
    pipeline = PartitionPipeline.earlier(snapshot, settings, scorer)
    if pipeline.takes(settings):
        return pipeline, Change(settings, start, settings_digest(settings))
    if successor is not None and not changes(successor[0], settings):
        begun, state = successor
        start, follows = begun.start, PartitionPipeline.restored(begun, settings, state)
    else:
        follows = new_pipeline(snapshot.topic, snapshot.partition, settings)
    return pipeline, Successor(follows, start, settings_digest(settings))


def changes(snapshot: Snapshot, settings: Settings) -> list[str]:
    """Describe the settings of a snapshot that p-values depend on and that are others now."""
    return changed_settings(snapshot.settings, scoring_settings(settings))
