"""Turns the records of one partition into messages, without I/O; worker and replay share it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Self, cast

import numpy as np
from msgspec import to_builtins
from numpy.typing import NDArray

from faust_oslrau.app.settings import Settings
from faust_oslrau.learner import (
    Incident,
    NetworkLearner,
    ScoredBlock,
    StreamScorer,
)
from faust_oslrau.learner.extent import Extent
from faust_oslrau.learner.state import Parts
from faust_oslrau.topics import (
    KEY,
    Columns,
    DecodedBlock,
    EntityReader,
    FieldChange,
    FieldWatch,
    KafkaRecord,
    TimeReader,
)
from faust_oslrau.topics.formats import Translator

from .block import (
    NOTHING_SCORED,
    EntityCounts,
    ProcessedBlock,
    SilenceCounts,
    Skipped,
    alarming,
    blamed,
    expected_fields,
)
from .building import new_decoder, new_scorer, restored_scorer
from .messages import Messages, Timed
from .model_file import initial_digest
from .snapshot import Snapshot, check_settings, installed_version, scoring_settings

# Texts of categories that are remembered at a time; those that messages may name stay.
_MOST_TEXTS = 10_000


class PartitionPipeline:
    """Decodes, scores and learns the records of one partition, in the order of its log.

    The messages do not depend on how the records are split into calls of `process`.

    Attributes
    ----------
    translator
        Makes JSON of the records; None for records that are JSON.
    """

    def __init__(self, topic: str, partition: int, settings: Settings) -> None:
        self.topic = topic
        self.partition = partition
        self.next_offset: int | None = None
        self.scorer: StreamScorer | None = None
        self._settings = settings
        self._decoder = new_decoder(settings, settings.chosen_fields)
        self._entities = None if settings.entity is None else EntityReader(settings.entity)
        self._times = None if settings.time is None else TimeReader(settings.time)
        self._messages = Messages(topic, partition, settings)
        self._watch = FieldWatch()
        self.translator: Translator | None = None

    @classmethod
    def restored(cls, snapshot: Snapshot, settings: Settings, scorer: Extent | None = None) -> Self:
        """Return the pipeline of a snapshot; the setting `learning` applies from there on.

        `scorer` is where the scorer's bytes are, if the snapshot does not hold them itself.

        Raises
        ------
        IncompatibleSnapshotError
            The snapshot was made with other settings.
        StateError
            The scorer's state is damaged or has another format version.
        """
        check_settings(snapshot, settings)
        pipeline = cls(snapshot.topic, snapshot.partition, settings)
        pipeline.next_offset = snapshot.next_offset
        pipeline._decoder = new_decoder(
            settings, snapshot.fields, snapshot.n_categories, snapshot.texts
        )
        pipeline._watch = snapshot.field_watch()
        state = snapshot.scorer if scorer is None else scorer
        if state is not None:
            pipeline.scorer = restored_scorer(snapshot, state, settings)
        return pipeline

    def snapshot(self, start: int, next_offset: int, topic_id: str | None = None) -> Snapshot:
        """Return the whole state, after learning from offset `start` up to `next_offset`."""
        scorer = self.scorer.to_bytes() if self.scorer else None
        return replace(self._without_scorer(start, next_offset, topic_id), scorer=scorer)

    def snapshot_parts(self, start: int, next_offset: int, topic_id: str | None = None) -> Parts:
        """Return the bytes of `snapshot` in parts, valid until the next record.

        The scorer's state, perhaps 100 MB, is not copied.
        """
        scorer = self.scorer.to_parts() if self.scorer else None
        return self._without_scorer(start, next_offset, topic_id).parts_with(scorer)

    def _without_scorer(self, start: int, next_offset: int, topic_id: str | None) -> Snapshot:
        """Return a snapshot without the scorer's state."""
        return Snapshot(
            topic=self.topic,
            partition=self.partition,
            start=start,
            next_offset=next_offset,
            fields=self.fields,
            settings=scoring_settings(self._settings),
            version=installed_version(),
            records=self.scorer.n_records if self.scorer else 0,
            nodes=self.learner.n_nodes_ if self.learner else 0,
            scorer=None,
            topic_id=topic_id,
            n_categories=self._decoder.n_categories,
            texts=tuple(sorted(self._texts().values())),
            watched=to_builtins(self._watch),
        )

    @property
    def fields(self) -> tuple[str, ...] | None:
        """Names of the columns; None before the first valid record, which chooses them."""
        return self._decoder.fields

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of the columns that are numbers."""
        return tuple(self._columns.numbers)

    @property
    def learned_names(self) -> list[str]:
        """Names of the columns that the learner is given."""
        return self.scorer.learned_names(self.fields or ()) if self.scorer else []

    @property
    def ignored(self) -> list[str]:
        """Names of the fields that are left out since some records: see `StreamScorer.left_out`."""
        columns = self.scorer.left_out if self.scorer else []
        return [(self.fields or ())[column] for column in columns]

    @property
    def _columns(self) -> Columns:
        decoder = self._decoder
        return Columns(decoder.fields or (), decoder.n_categories, decoder.codes.texts)

    def _texts(self) -> dict[float, str]:
        """Return the texts of categories that messages may name from now on, by their codes."""
        known = self._decoder.codes.texts
        codes = self.scorer.category_codes() if self.scorer else ()
        return {code: known[code] for code in codes if code in known}

    @property
    def left_out(self) -> tuple[str, ...]:
        """Fields of the record that chose the columns, each with the reason why it is none."""
        return self._decoder.left_out

    @property
    def initial_model(self) -> str | None:
        """The digest of the setting `initial_model`; None without one."""
        return initial_digest(self._settings)

    @property
    def learner(self) -> NetworkLearner | None:
        """The model; None before it has learned any record."""
        if self.scorer is None or self.scorer.learner.n_records_ == 0:
            return None
        return cast(NetworkLearner, self.scorer.learner)

    @property
    def open_incidents(self) -> list[Incident]:
        """The incidents that are open after the last record."""
        return self.scorer.open_incidents if self.scorer else []

    def needed_schemas(self, records: Sequence[KafkaRecord]) -> Mapping[int, int]:
        """Return the ids of unknown schemas of the next records, each with its first offset."""
        return {} if self.translator is None else self.translator.needs(records)

    def process(self, records: Sequence[KafkaRecord]) -> ProcessedBlock:
        """Score and learn the next records of the partition.

        Raises
        ------
        ValueError
            The offsets do not ascend from `next_offset`, or the schema of a record is to be
            accepted first; nothing was learned.
        """
        offsets = [record.offset for record in records]
        self._check_order(offsets)
        began = perf_counter()
        read, decoded = self._decoded(records)
        valid = [read[i] for i in decoded.positions] if decoded.rejected else read
        entities = None if self._entities is None else self._entities.read(valid)
        timestamps = [record.timestamp for record in valid]
        times = timestamps if self._times is None else self._times.read(valid)
        decode_seconds, before = perf_counter() - began, self._evicted
        scored = self._score(decoded.rows, entities, _places(valid, times))
        began = perf_counter()
        columns, write = self._columns, self._messages
        scores, anomalies = write.scores(valid, times, scored, columns)

        def of(row: int) -> Timed:
            return valid[row], times[row]

        events = [write.drift(of(row), change) for row, change in scored.changes]
        incidents = [write.incident(of(each.row), each, columns) for each in scored.incidents]
        changes = [
            write.entity(of(each.row), each, columns.fields) for each in scored.entity_events
        ]
        silences = [write.silence(of(each.row), each) for each in scored.silences]
        rate_changes = [write.rate(of(each.row), each) for each in scored.rate_changes]
        field_changes = self._field_changes(read, decoded.positions, times)
        dead_letters = write.dead_letters(records, decoded)
        seconds = {
            "decode": decode_seconds,
            "score": scored.score_seconds,
            "learn": scored.learn_seconds,
            "emit": perf_counter() - began,
        }
        if len(self._decoder.codes) > _MOST_TEXTS:
            self._decoder.codes.keep(self._texts())
        if offsets:
            self.next_offset = offsets[-1] + 1
        return ProcessedBlock(
            scores,
            anomalies,
            dead_letters,
            Counter(rejection.reason.value for _, rejection in decoded.rejected),
            np.array(timestamps, dtype=np.float64),
            scored.log_likelihood,
            scored.p_value,
            blamed(scored, columns.fields),
            scored.learned,
            self._skipped(scored),
            seconds,
            events,
            scored.drift,
            None if entities is None else self._counts(entities, before),
            incidents,
            Counter(name for event in scored.incidents for name in event.reached),
            self.open_incidents,
            self._settings.sends_anomalous_records,
            decoded.rows,
            changes,
            Counter(event.state for event in scored.entity_events),
            alarming(scored, entities),
            entities or [],
            silences,
            self._silence_counts(scored),
            rate_changes,
            sum(each.state == "began" for each in scored.rate_changes),
            expected_fields(decoded.rows, scored, columns.numbers),
            scored.forecast,
            decoded.wrong_types,
            [write.field((read[i], time), change) for i, time, change in field_changes],
            Counter(change.state.value for *_, change in field_changes),
            self._context(entities, times),
        )

    def _decoded(
        self, records: Sequence[KafkaRecord]
    ) -> tuple[Sequence[KafkaRecord], DecodedBlock]:
        """Return the records as JSON, and what their fields are."""
        if self.translator is None:
            return records, self._decoder.decode([record.value for record in records])
        read, refused = self.translator.translate(records)
        decoded = self._decoder.decode([record.value for record in read])
        rejected = [(i, refused.get(i, rejection)) for i, rejection in decoded.rejected]
        return read, replace(decoded, rejected=rejected)

    def _field_changes(
        self, records: Sequence[KafkaRecord], valid: Sequence[int], times: Sequence[int | None]
    ) -> list[tuple[int, int | None, FieldChange]]:
        """Return the changes of what records hold, each with the record's position and time.

        `times` are those of the `valid` positions.
        The fields of entity and time may vanish as those that are scored. An invalid record has the
        time of its timestamp.
        """
        named = (self._settings.entity, self._settings.time)
        chosen = (*(self.fields or ()), *(name for name in named if name not in (None, KEY)))
        found = self._watch.take([record.value for record in records], chosen)
        known = dict(zip(valid, times, strict=True)) if found else {}
        return [(i, known.get(i, records[i].timestamp), change) for i, change in found]

    def _context(
        self, entities: Sequence[bytes | None] | None, times: Sequence[int | None]
    ) -> dict[str, bool]:
        named = ((self._settings.entity, entities), (self._settings.time, times))
        return {
            name: any(value is not None for value in values)
            for name, values in named
            if values and name not in (None, KEY)
        }

    @property
    def _evicted(self) -> int:
        return self.scorer.n_evicted if self.scorer else 0

    def _counts(self, entities: list[bytes | None], evicted_before: int) -> EntityCounts:
        held = self.scorer.n_entities if self.scorer else 0
        return EntityCounts(held, self._evicted - evicted_before, entities.count(None))

    def _silence_counts(self, scored: ScoredBlock) -> SilenceCounts | None:
        if self.scorer is None or not self.scorer.silences:
            return None
        new = sum(each.state == "began" or each.entity is None for each in scored.silences)
        return SilenceCounts(new, self.scorer.n_silent, self.scorer.silence_limit)

    def _skipped(self, scored: ScoredBlock) -> Counter[str]:
        if self._settings.learning:
            return Counter({Skipped.FAR: scored.held_back})
        return Counter({Skipped.FROZEN: len(scored.log_likelihood)})

    def _check_order(self, offsets: list[int]) -> None:
        before = [(self.next_offset or 0) - 1, *offsets]
        for last, offset in zip(before, offsets, strict=False):  # `before` has one entry more
            if offset <= last:
                raise ValueError(
                    f"{self.topic} {self.partition}: expected offset {last + 1} or a later one, "
                    f"got {offset}"
                )

    def _score(
        self,
        rows: NDArray[np.float64],
        entities: list[bytes | None] | None,
        places: NDArray[np.int64],
    ) -> ScoredBlock:
        if self.scorer is None:
            if self.fields is None:
                return NOTHING_SCORED
            self.scorer = new_scorer(self._settings, self.fields, self._decoder.n_categories)
        return self.scorer.process(rows, entities, places)


def _places(records: Sequence[KafkaRecord], times: Sequence[int | None]) -> NDArray[np.int64]:
    """Return offset and time (m, 2) of each record, -1 for none."""
    known = [-1 if time is None else time for time in times]
    return np.array([[record.offset for record in records], known], np.int64).T
