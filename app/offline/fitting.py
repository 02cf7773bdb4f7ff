"""Learns files as a model to begin with, and merges models."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from faust_oslrau.app.errors import OslrauError, SettingsError
from faust_oslrau.app.files import LARGEST_MODEL, read_file
from faust_oslrau.app.pipeline import SeenFields, Snapshot, changed_settings
from faust_oslrau.app.settings import Settings
from faust_oslrau.learner import StreamScorer
from faust_oslrau.learner.errors import LearnerError
from faust_oslrau.learner.merging import merge_scorers
from faust_oslrau.topics import KafkaRecord

from .replay import Pipelines, Tell
from .told_lines import rejection_told


class ModelError(OslrauError):
    """A model cannot be learned, read, merged or written."""


class Fit:
    """Learns the records of one log.

    Attributes
    ----------
    records, rejected, first_rejection
        Records so far, the rejected ones by their reason, and what is wrong with the first one.
    seen
        Which fields had a value.

    Raises
    ------
    SettingsError
        The setting `learning` is off.
    """

    def __init__(self, settings: Settings, tell: Tell | None = None) -> None:
        if not settings.learning:
            raise SettingsError("setting learning: expected true, to learn a model")
        self.records = 0
        self.rejected: Counter[str] = Counter()
        self.first_rejection: str | None = None
        self.seen = SeenFields()
        self._pipelines = Pipelines(settings, tell=tell)
        self._last: Sequence[KafkaRecord] = ()

    def process(self, records: Sequence[KafkaRecord]) -> None:
        """Learn the next records."""
        block = self._pipelines.process(records)
        self.rejected += block.reasons
        self.first_rejection = self.first_rejection or block.first_rejection
        self.records += len(records)
        self.seen.add(self._pipelines.of(records).fields, block)
        self._last = records

    def model(self) -> Snapshot:
        """Return what was learned; ModelError if that is nothing."""
        if self._last:
            pipeline = self._pipelines.of(self._last)
            if pipeline.is_choosing and self.records > self.rejected.total():
                self._pipelines.choose(pipeline)
            if pipeline.learner is not None:
                return pipeline.snapshot(0, self._last[-1].offset + 1)
        valid = self.records - self.rejected.total()
        raise ModelError(
            f"expected at least 16 valid records to learn a model from, got {valid}"
            f"{rejection_told(self.first_rejection)}"
        )


def read_model(path: Path) -> Snapshot:
    """Read a model of `fit` or an exported snapshot.

    Raises
    ------
    ModelError
        The file cannot be read, or holds no model.
    """
    try:
        model = Snapshot.from_bytes(read_file(path, LARGEST_MODEL))
    except OSError as error:
        raise ModelError(f"file {path}: {error.strerror}") from error
    except LearnerError as error:
        raise ModelError(f"file {path}: {error}") from error
    if model.scorer is None:
        raise ModelError(f"file {path}: expected a model that has learned records")
    return model


def write_model(model: Snapshot, path: Path) -> None:
    """Write a model; the file gets its name when it is complete.

    Raises
    ------
    ModelError
        The file cannot be written, or is a device or a pipe, whose place a file would take.
    """
    target = path.resolve()
    part = target.with_name(f"{target.name}.part")
    if target.exists() and not target.is_file():
        raise ModelError(f"file {path}: expected a regular file")
    try:
        part.write_bytes(model.to_bytes())
        os.replace(part, target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise ModelError(f"file {path}: {error.strerror}") from error


def merge(models: Sequence[Snapshot]) -> Snapshot:
    """Return the mixture of models by the records that each has learned.

    Raises
    ------
    ModelError
        The models have other fields or settings than each other, or cannot be merged.
    """
    first = models[0]
    for model in models[1:]:
        if model.fields != first.fields:
            raise ModelError(f"expected models of the fields {first.fields}, got {model.fields}")
        if changed := changed_settings(first.settings, model.settings):
            raise ModelError(f"expected models with the same settings: {'; '.join(changed)}")
    try:
        scorers = [StreamScorer.from_bytes(model.scorer or b"") for model in models]
        scorer = merge_scorers(scorers)
    except LearnerError as error:
        raise ModelError(f"models cannot be merged: {error}") from error
    learner = StreamScorer.from_bytes(scorer).learner
    records = sum(model.records for model in models)
    return replace(first, records=records, nodes=learner.n_nodes_, scorer=scorer, topic_id=None)
