"""Turns the records of one partition into messages, without I/O; worker and replay share it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import NamedTuple, Self

from msgspec import to_builtins

from faust_oslrau.app.settings import Settings
from faust_oslrau.learner import (
    OSLRAU,
    Incident,
    ScoredBlock,
    StreamScorer,
)
from faust_oslrau.learner.state import Extent, Parts
from faust_oslrau.topics import (
    KEY,
    KafkaRecord,
    OutMessage,
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
    counted,
    expected_fields,
)
from .building import new_scorer, restored_scorer
from .epochs import Added, Epoch, added_fields, is_in_place
from .messages import Messages, Timed
from .reading import Reader, ReadRecords
from .snapshot import (
    Snapshot,
    changed_names,
    check_settings,
    earlier_settings,
    installed_version,
    scoring_settings,
    settings_digest,
)

# Texts of categories that are remembered at a time; those that messages may name stay.
_MOST_TEXTS = 10_000
_KEY_TOLD = "the message's key"


class Known(NamedTuple):
    """How much a pipeline knows of its entities and of the days of its seasons.

    Attributes
    ----------
    entity, time
        The settings that say which entities and days these are.
    entities, days
        How many they are: entities whose usual values are known, and whole days, None without
        seasons.
    """

    entity: str | None
    time: str | None
    entities: int
    days: int | None


class PartitionPipeline:
    """Decodes, scores and learns the records of one partition, in the order of its log.

    The messages do not depend on how the records are split into calls of `process`.
    """

    def __init__(self, topic: str, partition: int, settings: Settings) -> None:
        self.topic = topic
        self.partition = partition
        self.next_offset: int | None = None
        self.scorer: StreamScorer | None = None
        self.epochs: tuple[Epoch, ...] = ()
        self._settings = settings
        self._scoring = scoring_settings(settings)
        self._reader = Reader(settings)
        self._messages = Messages(topic, partition, settings)

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
        return cls._continued(snapshot, settings, scorer)

    @classmethod
    def earlier(cls, snapshot: Snapshot, settings: Settings, scorer: Extent | None = None) -> Self:
        """Return the pipeline of a snapshot as `restored`, with the settings of the snapshot.

        `settings` has those that no p-value depends on.
        """
        earlier = earlier_settings(snapshot.settings, settings)
        pipeline = cls._continued(snapshot, earlier, scorer)
        pipeline._scoring["initial_model"] = snapshot.settings.get("initial_model")
        return pipeline

    @classmethod
    def _continued(cls, snapshot: Snapshot, settings: Settings, scorer: Extent | None) -> Self:
        pipeline = cls(snapshot.topic, snapshot.partition, settings)
        pipeline.next_offset, pipeline.epochs = snapshot.next_offset, snapshot.epochs
        pipeline._reader.restore(snapshot)
        state = snapshot.scorer if scorer is None else scorer
        if state is not None:
            pipeline.scorer = restored_scorer(snapshot, state, settings)
        return pipeline

    @property
    def latest_change(self) -> tuple[int, str] | None:
        """From which offset on the pipeline has its settings, and their digest; None for always."""
        return (self.epochs[-1].until, settings_digest(self._settings)) if self.epochs else None

    def takes(self, settings: Settings) -> bool:
        """Return whether the model can go on with other settings in place."""
        changed = set(changed_names(self._scoring, scoring_settings(settings)))
        added = added_fields(self._settings, settings, self._reader.kinds)
        if added is None or not is_in_place(settings, changed):
            return False
        return self.scorer is None or self.scorer.takes_fields(*map(len, added))

    def change(self, settings: Settings, offset: int) -> None:
        """Go on with other settings, which it `takes`, from the record at an offset on.

        Of the fields that are added, all records so far had no value.
        """
        added = added_fields(self._settings, settings, self._reader.kinds) or Added()
        self.epochs += (Epoch(offset, self._scoring),)
        self._settings, self._scoring = settings, scoring_settings(settings)
        self._messages = Messages(self.topic, self.partition, settings)
        self._reader.change(settings, added)
        decoder, scorer = self._reader.decoder, self.scorer
        if decoder is None or scorer is None:
            return
        new = new_scorer(settings, decoder.fields, decoder.n_categories, decoder.counts)
        if added.numbers:
            transforms, fields = new.parameters["transforms"], decoder.fields
            scorer.add_numbers([transforms.get(fields.index(field)) for field in added.numbers])
        if added.categories:
            scorer.add_categories(len(added.categories))
        scorer.change_as(new)
        scorer.learner.memory = new.learner.memory
        scorer.learner.max_nodes = new.learner.max_nodes

    def snapshot(self, start: int, next_offset: int, topic_id: str | None = None) -> Snapshot:
        """Return the whole state, after learning from offset `start` up to `next_offset`."""
        scorer = self.scorer.to_bytes() if self.scorer else None
        return replace(self._without_scorer(start, next_offset, topic_id), scorer=scorer)

    def snapshot_parts(
        self,
        start: int,
        next_offset: int,
        topic_id: str | None = None,
        successor: Parts | None = None,
    ) -> Parts:
        """Return the bytes of `snapshot` in parts, valid until the next record.

        The scorer's state, perhaps 100 MB, is not copied. `successor` has the parts of the
        snapshot of the pipeline that is to follow this one.
        """
        scorer = self.scorer.to_parts() if self.scorer else None
        return self._without_scorer(start, next_offset, topic_id).parts_with(scorer, successor)

    def _without_scorer(self, start: int, next_offset: int, topic_id: str | None) -> Snapshot:
        """Return a snapshot without the scorer's state."""
        decoder = self._reader.decoder
        if decoder is None:
            raise ValueError("expected chosen fields, as a snapshot holds no records")
        return Snapshot(
            topic=self.topic,
            partition=self.partition,
            start=start,
            next_offset=next_offset,
            fields=decoder.fields,
            settings=self._scoring,
            version=installed_version(),
            records=self.n_records,
            nodes=self.learner.n_nodes_ if self.learner else 0,
            scorer=None,
            topic_id=topic_id,
            n_categories=decoder.n_categories,
            counts=decoder.counts,
            mixed=self._reader.mixed,
            texts=tuple(sorted(self._texts().values())),
            watched=to_builtins(self._reader.watch),
            left_out=self.left_out,
            epochs=self.epochs,
        )

    @property
    def translator(self) -> Translator | None:
        """What makes JSON of the records; None for records that are JSON."""
        return self._reader.translator

    @translator.setter
    def translator(self, translator: Translator) -> None:
        self._reader.translator = translator

    @property
    def is_choosing(self) -> bool:
        """Whether the first records have not chosen the fields yet: there is no state to keep."""
        return self._reader.first is not None

    @property
    def left_out(self) -> tuple[str, ...]:
        """Fields of the first records that these did not choose, each with the reason."""
        return self._reader.left_out

    @property
    def sparse(self) -> tuple[str, ...]:
        """Fields that hardly any of the first records has a value of."""
        return self._reader.sparse

    @property
    def n_unfit(self) -> int:
        """How many of the first records are invalid with the fields that they chose."""
        return self._reader.n_unfit

    @property
    def fields(self) -> tuple[str, ...] | None:
        """Names of the columns; None before they are chosen."""
        decoder = self._reader.decoder
        return None if decoder is None else decoder.fields

    @property
    def chosen_counts(self) -> frozenset[str]:
        """Names of the columns that are counts because records look like it."""
        decoder = self._reader.decoder
        return frozenset() if decoder is None else decoder.lenient

    @property
    def mixed(self) -> tuple[str, ...]:
        """Names of the numbers whose contents of other types count as missing."""
        return self._reader.mixed

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of the columns that are numbers."""
        return tuple(self._reader.columns.numbers)

    @property
    def learned_names(self) -> list[str]:
        """Names of the columns that the learner is given."""
        return self.scorer.learned_names(self.fields or ()) if self.scorer else []

    @property
    def dependences(self) -> dict[str, list[str]]:
        """The categories that columns depend on, of those with any."""
        return self.scorer.dependences(self.fields or ()) if self.scorer else {}

    def _texts(self) -> dict[float, str]:
        """Return the texts of categories that messages may name from now on, by their codes."""
        known = self._reader.columns.texts
        codes = self.scorer.category_codes() if self.scorer else ()
        return {code: known[code] for code in codes if code in known}

    @property
    def initial_model(self) -> str | None:
        """The digest of the setting `initial_model`; None without one."""
        return self._scoring.get("initial_model")

    @property
    def learner(self) -> OSLRAU | None:
        """The model; None before it has learned any record."""
        if self.scorer is None or self.scorer.learner.n_records_ == 0:
            return None
        return self.scorer.learner

    @property
    def n_records(self) -> int:
        """Valid records so far."""
        if self._reader.first is not None:
            return len(self._reader.first.records)
        return self.scorer.n_records if self.scorer else 0

    @property
    def known(self) -> Known:
        """How much of entities and days is known."""
        entities = self.scorer.n_entities if self.scorer else 0
        days = self.scorer.n_days if self.scorer else None
        return Known(self._settings.entity, self._settings.time, entities, days)

    @property
    def open_incidents(self) -> list[Incident]:
        """The incidents that are open after the last record."""
        return self.scorer.open_incidents if self.scorer else []

    def told_incidents(self, state: str, record: KafkaRecord) -> list[OutMessage]:
        """Return an event with this state of each open incident, told with the next record."""
        found = [] if self.scorer is None else self.scorer.told_incidents(state)
        columns, timed = self._reader.columns, (record, record.timestamp)
        return [self._messages.incident(timed, event, columns) for event in found]

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
        read = self._reader.read(records)
        decode_seconds, evicted = perf_counter() - began, self._evicted
        first = NOTHING_SCORED if read.chosen_by is None else self._score(read.chosen_by)
        scored = self._score(read)
        began = perf_counter()
        columns, write = self._reader.columns, self._messages
        valid, times, decoded = read.valid, read.times, read.decoded
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
        field_changes = self._reader.field_changes(read)
        dead_letters = write.dead_letters(records, decoded)
        seconds = {
            "decode": decode_seconds,
            "score": first.score_seconds + scored.score_seconds,
            "learn": first.learn_seconds + scored.learn_seconds,
            "emit": perf_counter() - began,
        }
        self._forget_texts()
        if offsets:
            self.next_offset = offsets[-1] + 1
        return ProcessedBlock(
            scores,
            anomalies,
            dead_letters,
            counted(rejection.reason.value for _, rejection in decoded.rejected),
            read.timestamps,
            scored.log_likelihood,
            scored.p_value,
            blamed(scored, columns.fields),
            first.learned + scored.learned,
            self._skipped(first, scored),
            seconds,
            events,
            scored.drift,
            None if read.entities is None else self._counts(read.entities, evicted),
            incidents,
            counted(name for event in scored.incidents for name in event.reached),
            self.open_incidents,
            self._settings.sends_anomalous_records,
            decoded.rows,
            changes,
            counted(event.state for event in scored.entity_events),
            alarming(scored, read.entities),
            read.entities or [],
            silences,
            self._silence_counts(scored),
            rate_changes,
            sum(each.state == "began" for each in scored.rate_changes),
            expected_fields(decoded.rows, scored, columns.numbers),
            scored.forecast,
            decoded.wrong_types,
            [write.field((read.records[i], time), change) for i, time, change in field_changes],
            counted(change.state.value for *_, change in field_changes),
            self._context(read),
        )

    def choose_fields(self) -> ScoredBlock:
        """Choose the fields by the records so far, however few, and learn these.

        Raises
        ------
        ValueError
            The fields are chosen, or there is no valid record yet.
        """
        return self._score(self._reader.choose_fields())

    def _context(self, read: ReadRecords) -> dict[str, bool]:
        of = self._settings
        roles = ((of.entity, read.entities), (of.rates_by, read.groups), (of.time, read.times))
        found = {
            _KEY_TOLD if name == KEY else name: any(value is not None for value in values)
            for name, values in roles
            if values and name is not None
        }
        return found | dict.fromkeys(self._unknown(), False)

    def _unknown(self) -> list[str]:
        """Return fields that settings name, and the records that chose the fields do not."""
        of = self._settings
        tables = (of.kinds, of.transforms, of.directions, of.least)
        named = {field for table in tables for field, _ in table}
        if not named:
            return []
        left_out = (text.rpartition(" (")[0] for text in self.left_out)
        return sorted(named.difference(self.fields or named, left_out))

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

    def _skipped(self, first: ScoredBlock, scored: ScoredBlock) -> dict[str, int]:
        if self._settings.learning:
            return {Skipped.FAR: first.held_back + scored.held_back}
        return {Skipped.FROZEN: len(scored.log_likelihood)}

    def _check_order(self, offsets: list[int]) -> None:
        before = [(self.next_offset or 0) - 1, *offsets]
        for last, offset in zip(before, offsets, strict=False):  # `before` has one entry more
            if offset <= last:
                raise ValueError(
                    f"{self.topic} {self.partition}: expected offset {last + 1} or a later one, "
                    f"got {offset}"
                )

    def _score(self, read: ReadRecords) -> ScoredBlock:
        """Score and learn records but those that came before the fields were chosen."""
        decoder, n = self._reader.decoder, read.unscored
        if decoder is None:
            return NOTHING_SCORED.after(n)
        if self.scorer is None:
            self.scorer = new_scorer(
                self._settings, decoder.fields, decoder.n_categories, decoder.counts
            )
        entities = None if read.entities is None else read.entities[n:]
        groups = None if read.groups is None else read.groups[n:]
        scored = self.scorer.process(read.decoded.rows[n:], entities, read.places[n:], groups)
        return scored.after(n) if n else scored

    def _forget_texts(self) -> None:
        decoder = self._reader.decoder
        if decoder is not None and len(decoder.codes) > _MOST_TEXTS:
            decoder.codes.keep(self._texts())
