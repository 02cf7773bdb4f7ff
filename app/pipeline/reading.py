"""What is read of one partition's records before they are scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import (
    KEY,
    NOTHING_DECODED,
    Columns,
    DecodedBlock,
    EntityReader,
    FeatureDecoder,
    FieldChange,
    FieldWatch,
    KafkaRecord,
    Kind,
    Rejection,
    TimeReader,
)
from faust_oslrau.topics.formats import Translator

from .building import new_choice, new_decoder
from .epochs import Added
from .first_records import FirstRecords
from .snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ReadRecords:
    """What was read of consecutive records.

    Attributes
    ----------
    records
        The records, as JSON.
    valid
        The valid ones (m,).
    decoded
        Their rows, and why the others are invalid.
    entities, times, groups
        Those of the valid ones (m,); no entities without the setting `entity`, no groups without
        `rates_by`.
    n_first, unscored
        How many of all records, and of the valid ones, came before the fields were chosen.
    chosen_by
        The records that chose the fields with the last of these, all valid with these fields.
    """

    records: Sequence[KafkaRecord]
    valid: Sequence[KafkaRecord]
    decoded: DecodedBlock
    entities: list[bytes | None] | None
    times: Sequence[int | None]
    groups: list[bytes | None] | None
    n_first: int = 0
    unscored: int = 0
    chosen_by: ReadRecords | None = None

    @property
    def timestamps(self) -> NDArray[np.float64]:
        """Time stamps (m,) of the valid records in milliseconds."""
        return np.array([record.timestamp for record in self.valid], dtype=np.float64)

    @property
    def places(self) -> NDArray[np.int64]:
        """Offset and time (m, 2) of the valid records, -1 for none."""
        known = [-1 if time is None else time for time in self.times]
        return np.array([[record.offset for record in self.valid], known], np.int64).T


class Reader:
    """Reads the records of one partition in the order of its log.

    Attributes
    ----------
    translator
        Makes JSON of the records; None for records that are JSON.
    decoder
        Decodes the fields; None until the first records have chosen them.
    first
        The first records; None as soon as the fields are chosen.
    mixed
        Numbers in place of which some of the first records have something else, which is missing.
    left_out
        Fields of the first records that these did not choose, each with the reason.
    sparse
        Fields that hardly any of them has a value of.
    n_unfit
        How many of the first records are invalid with the fields that they chose.
    watch
        Looks for changes of what the fields hold.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        fields = settings.chosen_fields
        self.decoder: FeatureDecoder | None = None
        self.first: FirstRecords | None = None
        if fields is None:
            self.first = FirstRecords(new_choice(settings))
        else:
            self.decoder = new_decoder(settings, fields)
        self.mixed: tuple[str, ...] = ()
        self.left_out: tuple[str, ...] = ()
        self.sparse: tuple[str, ...] = ()
        self.n_unfit = 0
        self.watch = FieldWatch()
        self.translator: Translator | None = None
        self._entities = None if settings.entity is None else EntityReader(settings.entity)
        by = settings.rates_by
        self._groups = None if by is None else EntityReader(by, booleans=True)
        self._times = None if settings.time is None else TimeReader(settings.time)

    def restore(self, snapshot: Snapshot) -> None:
        """Go on with the fields of a snapshot, and with what is known of them."""
        self.first, self.mixed, self.left_out = None, snapshot.mixed, snapshot.left_out
        self.decoder = new_decoder(
            self._settings, snapshot.fields, snapshot.n_categories, snapshot.counts,
            self.mixed, snapshot.texts,
        )  # fmt: skip
        self.watch = snapshot.field_watch()

    def change(self, settings: Settings, added: Added) -> None:
        """Read with other settings from now on, and with the fields that these have ``added``."""
        decoder, self._settings = self.decoder, settings
        if decoder is None:
            return
        if settings.chosen_fields is not None:
            self.left_out, self.sparse = (), ()
        n = len(decoder.fields) - decoder.n_categories
        numbers, categories = decoder.fields[:n], decoder.fields[n:]
        self.decoder = new_decoder(
            settings, [*numbers, *added.numbers, *categories, *added.categories],
            decoder.n_categories + len(added.categories), decoder.counts, self.mixed,
            tuple(decoder.codes.texts.values()),
        )  # fmt: skip

    @property
    def kinds(self) -> dict[str, Kind] | None:
        """The kinds of the fields; None before they are chosen."""
        decoder = self.decoder
        if decoder is None:
            return None
        kinds = dict.fromkeys(decoder.fields, Kind.NUMBER)
        kinds |= dict.fromkeys(decoder.counts, Kind.COUNT)
        categories = decoder.fields[len(decoder.fields) - decoder.n_categories :]
        return kinds | dict.fromkeys(categories, Kind.CATEGORY)

    @property
    def columns(self) -> Columns:
        """The columns of rows; none before they are chosen."""
        decoder = self.decoder
        if decoder is None:
            return Columns((), 0, {})
        return Columns(decoder.fields, decoder.n_categories, decoder.codes.texts)

    def read(self, records: Sequence[KafkaRecord]) -> ReadRecords:
        """Read the next records."""
        refused: Mapping[int, Rejection] = {}
        if self.translator is not None:
            records, refused = self.translator.translate(records)
        first = [] if self.first is None else self.first.take(records)
        is_due = self.first is not None and self.first.are_enough
        chosen_by = self.choose_fields() if is_due else None
        decoded = self._decoded(records, first, refused)
        valid = [records[i] for i in decoded.positions] if decoded.rejected else records
        context = self._context(valid)
        return ReadRecords(
            records, valid, decoded, *context, len(first), first.count(None), chosen_by
        )

    def choose_fields(self) -> ReadRecords:
        """Let the records so far choose the fields, however few; return those that are valid then.

        Raises
        ------
        ValueError
            The fields are chosen, or there is no valid record yet.
        """
        if self.first is None or not self.first.records:
            raise ValueError("expected first records that have not chosen the fields yet")
        chosen = self.first.chosen()
        self.mixed, self.left_out, self.sparse = chosen.mixed, chosen.left_out, chosen.sparse
        records, self.first = self.first.records, None
        self.decoder = new_decoder(
            self._settings, chosen.numbers + chosen.categories, len(chosen.categories),
            chosen.counts, self.mixed,
        )  # fmt: skip
        decoded = self.decoder.decode([record.value for record in records])
        valid, self.n_unfit = [records[i] for i in decoded.positions], len(decoded.rejected)
        return ReadRecords(records, valid, decoded, *self._context(valid))

    def field_changes(self, read: ReadRecords) -> list[tuple[int, int | None, FieldChange]]:
        """Return changes of what records hold, each with the record's position and time.

        The fields of entity and time may vanish as those that are scored. An invalid record has the
        time of its timestamp.
        """
        of, n, columns = self._settings, read.n_first, self.columns
        roles = (of.entity, of.time, of.rates_by)
        named = tuple(name for name in roles if name is not None and name != KEY)
        values = [record.value for record in read.records]
        found = self.watch.take(values[:n], named) if n else []
        categories = columns.fields[len(columns.numbers) :]
        later = self.watch.take(values[n:], (*columns.fields, *named), categories)
        found += [(n + i, change) for i, change in later]
        known = dict(zip(read.decoded.positions, read.times, strict=True)) if found else {}
        return [(i, known.get(i, read.records[i].timestamp), change) for i, change in found]

    def _decoded(
        self,
        records: Sequence[KafkaRecord],
        first: Sequence[Rejection | None],
        refused: Mapping[int, Rejection],
    ) -> DecodedBlock:
        """Return the fields of records; those of the ``first`` ones are missing."""
        decoded = NOTHING_DECODED
        if self.decoder is not None:
            decoded = self.decoder.decode([record.value for record in records[len(first) :]])
        if first:
            decoded = decoded.after(first)
        return decoded.refusing(refused) if refused else decoded

    def _context(
        self, valid: Sequence[KafkaRecord]
    ) -> tuple[list[bytes | None] | None, Sequence[int | None], list[bytes | None] | None]:
        """Return entities, times and groups of valid records."""
        entities = None if self._entities is None else self._entities.read(valid)
        groups = None if self._groups is None else self._groups.read(valid)
        if self._times is None:
            return entities, [record.timestamp for record in valid], groups
        return entities, self._times.read(valid), groups
