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
    NOTHING_DECODED,
    Columns,
    DecodedBlock,
    EntityReader,
    FieldChange,
    FieldWatch,
    KafkaRecord,
    Rejection,
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
from .building import new_choice, new_decoder, new_scorer, restored_scorer
from .first_records import FirstRecords
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
    left_out
        Fields of the first records that these did not choose, each with the reason.
    """

    def __init__(self, topic: str, partition: int, settings: Settings) -> None:
        self.topic = topic
        self.partition = partition
        self.next_offset: int | None = None
        self.scorer: StreamScorer | None = None
        self._settings = settings
        fields = settings.chosen_fields
        self._first = None if fields is not None else FirstRecords(new_choice(settings))
        self._decoder = None if fields is None else new_decoder(settings, fields)
        self.left_out: tuple[str, ...] = ()
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
        pipeline._first = None
        pipeline._decoder = new_decoder(
            settings, snapshot.fields, snapshot.n_categories, snapshot.texts
        )
        pipeline.left_out = snapshot.left_out
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
        if self._decoder is None:
            raise ValueError("expected chosen fields, as a snapshot holds no records")
        return Snapshot(
            topic=self.topic,
            partition=self.partition,
            start=start,
            next_offset=next_offset,
            fields=self._decoder.fields,
            settings=scoring_settings(self._settings),
            version=installed_version(),
            records=self.n_records,
            nodes=self.learner.n_nodes_ if self.learner else 0,
            scorer=None,
            topic_id=topic_id,
            n_categories=self._decoder.n_categories,
            texts=tuple(sorted(self._texts().values())),
            watched=to_builtins(self._watch),
            left_out=self.left_out,
        )

    @property
    def is_choosing(self) -> bool:
        """Whether the first records have not chosen the fields yet: there is no state to keep."""
        return self._first is not None

    @property
    def fields(self) -> tuple[str, ...] | None:
        """Names of the columns; None before they are chosen."""
        return None if self._decoder is None else self._decoder.fields

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of the columns that are numbers."""
        return tuple(self._columns.numbers)

    @property
    def learned_names(self) -> list[str]:
        """Names of the columns that the learner is given."""
        return self.scorer.learned_names(self.fields or ()) if self.scorer else []

    @property
    def _columns(self) -> Columns:
        decoder = self._decoder
        if decoder is None:
            return Columns((), 0, {})
        return Columns(decoder.fields, decoder.n_categories, decoder.codes.texts)

    def _texts(self) -> dict[float, str]:
        """Return the texts of categories that messages may name from now on, by their codes."""
        known = self._columns.texts
        codes = self.scorer.category_codes() if self.scorer else ()
        return {code: known[code] for code in codes if code in known}

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
    def n_records(self) -> int:
        """Valid records so far."""
        if self._first is not None:
            return len(self._first.records)
        return self.scorer.n_records if self.scorer else 0

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
        began, before = perf_counter(), NOTHING_SCORED
        read, refused = self._translated(records)
        first = [] if self._first is None else self._first.take(read)
        if self._first is not None and self._first.are_enough:
            before = self.choose_fields()
        decoded = self._decoded(read, first, refused)
        valid = [read[i] for i in decoded.positions] if decoded.rejected else read
        entities = self._entities_of(valid)
        timestamps, times = [record.timestamp for record in valid], self._times_of(valid)
        decode_seconds, evicted = perf_counter() - began, self._evicted
        unscored = first.count(None)
        scored = self._score(decoded.rows, entities, _places(valid, times), unscored)
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
        field_changes = self._field_changes(read, len(first), decoded.positions, times)
        dead_letters = write.dead_letters(records, decoded)
        seconds = {
            "decode": decode_seconds,
            "score": scored.score_seconds,
            "learn": scored.learn_seconds,
            "emit": perf_counter() - began,
        }
        if self._decoder is not None and len(self._decoder.codes) > _MOST_TEXTS:
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
            before.learned + scored.learned,
            self._skipped(before, scored),
            seconds,
            events,
            scored.drift,
            None if entities is None else self._counts(entities, evicted),
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

    def choose_fields(self) -> ScoredBlock:
        """Choose the fields by the records so far, however few, and learn these.

        Raises
        ------
        ValueError
            The fields are chosen, or there is no valid record yet.
        """
        if self._first is None or not self._first.records:
            raise ValueError("expected first records that have not chosen the fields yet")
        numbers, categories, self.left_out = self._first.chosen()
        records, self._first = self._first.records, None
        fields, n_categories = numbers + categories, len(categories)
        self._decoder = new_decoder(self._settings, fields, n_categories)
        decoded = self._decoder.decode([record.value for record in records])
        valid = [records[i] for i in decoded.positions]
        places = _places(valid, self._times_of(valid))
        return self._score(decoded.rows, self._entities_of(valid), places, 0)

    def _translated(
        self, records: Sequence[KafkaRecord]
    ) -> tuple[Sequence[KafkaRecord], Mapping[int, Rejection]]:
        """Return the records as JSON, and why some of them cannot be."""
        return (records, {}) if self.translator is None else self.translator.translate(records)

    def _decoded(
        self,
        records: Sequence[KafkaRecord],
        first: Sequence[Rejection | None],
        refused: Mapping[int, Rejection],
    ) -> DecodedBlock:
        """Return what the fields of records are; those of the ``first`` ones are missing."""
        n, later = len(first), NOTHING_DECODED
        if self._decoder is not None:
            later = self._decoder.decode([record.value for record in records[n:]])
        if first:
            later = later.after(first)
        rejected = [(i, refused.get(i, rejection)) for i, rejection in later.rejected]
        return replace(later, rejected=rejected) if refused else later

    def _entities_of(self, valid: Sequence[KafkaRecord]) -> list[bytes | None] | None:
        return None if self._entities is None else self._entities.read(valid)

    def _times_of(self, valid: Sequence[KafkaRecord]) -> Sequence[int | None]:
        if self._times is None:
            return [record.timestamp for record in valid]
        return self._times.read(valid)

    def _field_changes(
        self,
        records: Sequence[KafkaRecord],
        n_first: int,
        valid: Sequence[int],
        times: Sequence[int | None],
    ) -> list[tuple[int, int | None, FieldChange]]:
        """Return the changes of what records hold, each with the record's position and time.

        The first `n_first` come before the fields are chosen. `times` are those of the `valid`
        positions.
        The fields of entity and time may vanish as those that are scored. An invalid record has the
        time of its timestamp.
        """
        roles = (self._settings.entity, self._settings.time)
        named = tuple(name for name in roles if name is not None and name != KEY)
        values = [record.value for record in records]
        found = self._watch.take(values[:n_first], named)
        later = self._watch.take(values[n_first:], (*(self.fields or ()), *named))
        found += [(n_first + i, change) for i, change in later]
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

    def _skipped(self, first: ScoredBlock, scored: ScoredBlock) -> Counter[str]:
        if self._settings.learning:
            return Counter({Skipped.FAR: first.held_back + scored.held_back})
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
        unscored: int,
    ) -> ScoredBlock:
        """Score and learn rows but the first ones, which have been learned."""
        if self._decoder is None:
            return NOTHING_SCORED.after(unscored)
        if self.scorer is None:
            decoder = self._decoder
            self.scorer = new_scorer(self._settings, decoder.fields, decoder.n_categories)
        later = None if entities is None else entities[unscored:]
        scored = self.scorer.process(rows[unscored:], later, places[unscored:])
        return scored.after(unscored) if unscored else scored


def _places(records: Sequence[KafkaRecord], times: Sequence[int | None]) -> NDArray[np.int64]:
    """Return offset and time (m, 2) of each record, -1 for none."""
    known = [-1 if time is None else time for time in times]
    return np.array([[record.offset for record in records], known], np.int64).T
