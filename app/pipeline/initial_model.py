"""Begins a partition, with the model of the setting `initial_model` if there is one."""

from __future__ import annotations

from dataclasses import replace

from faust_oslrau.app.errors import SettingsError
from faust_oslrau.app.settings import Settings, short
from faust_oslrau.learner.errors import StateError

from . import model_file
from .building import incident_parameters
from .pipeline import PartitionPipeline
from .snapshot import Snapshot, changed_settings, scoring_settings


def new_pipeline(topic: str, partition: int, settings: Settings) -> PartitionPipeline:
    """Return the pipeline of a partition without a snapshot.

    Raises
    ------
    SettingsError
        The initial model cannot be read, is damaged, or was made with other settings.
    """
    if settings.initial_model is None:
        return PartitionPipeline(topic, partition, settings)
    model = replace(initial_model(settings), topic=topic, partition=partition)
    try:
        pipeline = PartitionPipeline.restored(model, settings)
    except StateError as error:
        raise _damaged(settings.initial_model, error) from error
    pipeline.next_offset = None
    if pipeline.scorer is not None:  # what the history did last is not what the partition did
        scorer = pipeline.scorer
        scorer.incidents, scorer.silences, scorer.rates = None, False, None
        scorer.incidents = incident_parameters(settings)
        scorer.silences, scorer.rates = settings.silences, settings.rate_seconds
        scorer.rates_by = settings.rates_by
    return pipeline


def initial_model(settings: Settings) -> Snapshot:
    """Return the snapshot of the setting `initial_model`, which must not be None.

    Raises
    ------
    SettingsError
        The file cannot be read, is damaged, or was made with other settings.
    """
    path = settings.initial_model or ""
    try:
        model = Snapshot.from_bytes(model_file.read(path))
    except StateError as error:
        raise _damaged(path, error) from error
    now = scoring_settings(settings)
    before = {**model.settings, "initial_model": now["initial_model"]}
    changed = changed_settings(before, now)
    if changed:
        raise SettingsError(
            f"setting initial_model: {short(path)} was made with {'; '.join(changed)}"
        )
    return replace(model, settings=now)


def _damaged(path: str, error: StateError) -> SettingsError:
    return SettingsError(
        f"setting initial_model: expected a model's file, got {short(path)}: {error}"
    )
