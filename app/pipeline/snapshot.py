"""A snapshot: the whole state of a partition at an offset, as an object and as bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from importlib.metadata import version
from typing import Any, Self

import msgspec

from faust_oslrau.app.errors import SettingsError
from faust_oslrau.app.settings import OSLRAU_PARAMETERS, LearnerSettings, Settings, short
from faust_oslrau.learner.errors import StateError
from faust_oslrau.learner.state import Extent, Parts, contents, parts
from faust_oslrau.topics import FieldWatch

from .epochs import Epoch
from .model_file import digest, digest_of

_KIND = "Snapshot"
# What snapshots without these settings were made with.
_FIRST_VALUES: Mapping[str, Any] = {
    "learner.mixtures": False,
    "entity": None,
    "kinds": {},
    "history": None,
    "time": None,
    "initial_model": None,
    "seasons": None,
    "adapt_after": 512,
    "format": "json",
    "wrong_type": "reject",
    "directions": {},
    "least": {},
}
_TYPES = {
    "topic": str,
    "partition": int,
    "start": int,
    "next_offset": int,
    "settings": dict,
    "version": str,
    "records": int,
    "nodes": int,
    "fields": list,
}
_LISTS = ("fields", "texts", "counts", "mixed", "left_out")


class IncompatibleSnapshotError(SettingsError):
    """A snapshot was made with other settings or another version, so that scores would differ."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a partition's pipeline after all records before an offset.

    It holds no time and no host name: the same log and settings give the same bytes.

    Attributes
    ----------
    topic, partition
        The source of the records.
    start
        The offset at which learning began.
    next_offset
        The offset of the next record; all outputs for lower offsets are acknowledged.
    fields
        Names of the columns.
    settings
        The settings that scores depend on.
    version
        The version of this software that wrote the snapshot.
    records, nodes
        The number of valid records so far, and of nodes of the network.
    scorer
        The scorer's bytes; None before the first valid record.
    topic_id
        The id of the source topic; None if it is unknown.
    n_categories
        How many of the columns, the last ones, are categories.
    texts
        The texts of categories that messages may name.
    watched
        The state of the `FieldWatch`; None in a snapshot of an earlier version.
    counts
        The columns that are counts.
    mixed
        The columns of numbers whose other contents count as missing, as the first records had some.
    left_out
        Fields that the first records did not choose, each with the reason.
    epochs
        The settings that the model had before, the first ones first.
    """

    topic: str
    partition: int
    start: int
    next_offset: int
    fields: tuple[str, ...]
    settings: Mapping[str, Any]
    version: str
    records: int
    nodes: int
    scorer: bytes | None
    topic_id: str | None = None
    n_categories: int = 0
    texts: tuple[str, ...] = ()
    watched: Mapping[str, Any] | None = None
    counts: tuple[str, ...] = ()
    mixed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    epochs: tuple[Epoch, ...] = ()

    def field_watch(self) -> FieldWatch:
        """Return what is known of the fields of the partition's records.

        Raises
        ------
        StateError
            It cannot be a state.
        """
        try:
            return msgspec.convert(self.watched or {}, FieldWatch)
        except msgspec.ValidationError as error:
            raise StateError(f"state: fields that records have: {error}") from error

    def to_bytes(self) -> bytes:
        """Return the snapshot as bytes with a checksum."""
        return b"".join(self.parts_with(None if self.scorer is None else [self.scorer]))

    def parts_with(self, scorer: Parts | None, successor: Parts | None = None) -> Parts:
        """Return the snapshot's bytes in parts, with those of the scorer in place of its own.

        `successor` has the bytes of the snapshot of the pipeline that is to follow this one.
        """
        values = {name: getattr(self, name) for name in self.__slots__ if name != "scorer"}
        states = {"scorer": scorer, "successor": successor}
        return parts(_KIND, values, {name: state for name, state in states.items() if state})

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what `to_bytes` wrote, without decoding the scorer's bytes; raises as `read`."""
        snapshot, scorer, _ = cls.read(Extent.of(data))
        return snapshot if scorer is None else replace(snapshot, scorer=scorer.read())

    @classmethod
    def read(cls, data: Extent) -> tuple[Self, Extent | None, Extent | None]:
        """Return a snapshot without the scorer, and where the bytes of scorer and successor are.

        Raises
        ------
        StateError
            The bytes are damaged, have another format version, or are no snapshot.
        """
        values, arrays = contents(data, _KIND)
        _check_values(values)
        values |= {name: tuple(values.get(name, ())) for name in _LISTS}
        values["epochs"] = tuple(Epoch(*each) for each in values.get("epochs", []))
        states = {name: array.content for name, array in arrays.items()}
        scorer, successor = states.get("scorer"), states.get("successor")
        try:
            return cls(**values, scorer=None), scorer, successor
        except TypeError as error:
            raise StateError(f"state: expected the values of a snapshot, {error}") from error


def _check_values(values: Mapping[str, Any]) -> None:
    for name, kind in _TYPES.items():
        if type(values.get(name)) is not kind:
            raise StateError(f"state: expected {name} of a snapshot, got {values.get(name)!r}")
    for name in _LISTS:
        texts = values.get(name, [])
        if not (isinstance(texts, list) and all(isinstance(text, str) for text in texts)):
            raise StateError(f"state: expected {name} to be texts, got {texts!r}")
    if not values["fields"]:
        raise StateError("state: expected fields, got none")
    topic_id, n_categories = values.get("topic_id"), values.get("n_categories", 0)
    if type(n_categories) is not int or not 0 <= n_categories <= len(values["fields"]):
        raise StateError(f"state: expected a number of categories, got {n_categories!r}")
    if topic_id is not None and not isinstance(topic_id, str):
        raise StateError(f"state: expected the id of a topic, got {topic_id!r}")
    epochs = values.get("epochs", [])
    for epoch in epochs if isinstance(epochs, list) else [epochs]:
        if not (isinstance(epoch, list) and [type(part) for part in epoch] == [int, dict]):
            raise StateError(f"state: expected the settings until an offset, got {epoch!r}")
    if not 0 <= values["start"] <= values["next_offset"]:
        raise StateError(
            f"state: expected offsets, got {values['start']} to {values['next_offset']}"
        )


def installed_version() -> str:
    """Return the installed version of this software."""
    return version("faust-oslrau")


def scoring_settings(settings: Settings) -> dict[str, Any]:
    """Return the settings that p-values depend on: a state is valid for one set of them."""
    features, history, model = settings.features, settings.history, settings.initial_model
    is_relevant = bool(settings.directions or settings.least)
    values = {
        "features": features if isinstance(features, str) else list(features),
        "batch_size": settings.batch_size,
        "transforms": dict(settings.transforms),
        "format": settings.format,
        "wrong_type": settings.wrong_type,
        "kinds": dict(settings.kinds),
        "directions": dict(settings.directions),
        "least": dict(settings.least),
        "alarm_rate": settings.alarm_rate if is_relevant else None,
        "entity": settings.entity,
        "max_entities": None if settings.entity is None else settings.max_entities,
        "time": settings.time,
        "history": None if history is None else list(history),
        "initial_model": None if model is None else digest(model),
        "seasons": settings.seasons,
        "adapt_after": settings.adapt_after,
    }
    parameters = settings.learner.parameters
    return {
        **{name: value for name, value in values.items() if value != _FIRST_VALUES.get(name)},
        **{f"learner.{name}": value for name, value in parameters.items()},
    }


def settings_digest(settings: Settings) -> str:
    """Return a digest of the settings that p-values depend on."""
    text = msgspec.json.encode(scoring_settings(settings), order="deterministic")
    return digest_of(text)


def earlier_settings(earlier: Mapping[str, Any], settings: Settings) -> Settings:
    """Return settings with the ``earlier`` ones of a snapshot that p-values depend on.

    Without an initial model, as the snapshot goes on with what it made of it, and without what the
    installed version does not know, as the state holds it.

    Raises
    ------
    SettingsError
        A value of the snapshot's settings cannot be one.
    """
    values = {**_FIRST_VALUES, **earlier, "initial_model": None}

    def of(prefix: str, names: Iterable[str]) -> dict[str, Any]:
        return {name: values[prefix + name] for name in names if prefix + name in values}

    prefix, own = LearnerSettings.prefix, [entry.name for entry in fields(LearnerSettings)]
    oslrau = of(prefix, OSLRAU_PARAMETERS)
    learner = LearnerSettings(**of(prefix, own), oslrau=tuple(oslrau.items()))
    return replace(settings, **of("", [entry.name for entry in fields(Settings)]), learner=learner)


def changed_names(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Name the settings that scores depend on and that have other values now."""
    before, now = {**_FIRST_VALUES, **before}, {**_FIRST_VALUES, **now}
    # A setting that the other version did not have is ignored: its state holds the value.
    return [name for name in sorted(now.keys() & before.keys()) if before[name] != now[name]]


def changed_settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Describe the settings that scores depend on and that have other values now."""
    before, now = {**_FIRST_VALUES, **before}, {**_FIRST_VALUES, **now}
    return [
        f"{name} = {short(before[name])}, now {short(now[name])}"
        for name in changed_names(before, now)
    ]


def check_settings(snapshot: Snapshot, settings: Settings) -> None:
    """Refuse a snapshot that was made with other settings.

    Raises
    ------
    IncompatibleSnapshotError
        The message names the settings, both values, and what to do.
    """
    changed = changed_settings(snapshot.settings, scoring_settings(settings))
    if changed:
        raise IncompatibleSnapshotError(
            f"the snapshot of {snapshot.topic}/{snapshot.partition} at offset "
            f"{snapshot.next_offset} was made with {'; '.join(changed)}: restore the old "
            "settings, start a new deployment with another app_id, or discard the model with "
            "`faust-oslrau inspect --forget`"
        )
