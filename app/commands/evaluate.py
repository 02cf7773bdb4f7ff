"""`faust-oslrau evaluate`: compare the alarms of a labelled file with its labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import orjson

from faust_oslrau.app.errors import SettingsError
from faust_oslrau.app.offline.command_line import (
    file_options,
    tell_of_fields,
    warn_of_empty_fields,
    warn_of_missing_times,
)
from faust_oslrau.app.offline.evaluation import evaluate_log
from faust_oslrau.app.offline.labelled_file import LabelledFile
from faust_oslrau.app.offline.logs import read_file
from faust_oslrau.app.offline.plots import check_plot, plot_evaluation
from faust_oslrau.app.offline.progress import progress
from faust_oslrau.app.offline.scored_log import ScoredLog
from faust_oslrau.app.offline.tables import evaluation_text
from faust_oslrau.app.settings import Settings
from faust_oslrau.app.settings.command_line import settings_of_file
from faust_oslrau.topics import KafkaRecord


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--labels", required=True, metavar="COLUMN",
              help="Column with 1 or true in anomalous rows, else 0 or false.")  # fmt: skip
@click.option("--settings", "settings_files", multiple=True, metavar="FILE",
              type=click.Path(path_type=Path),
              help="TOML settings; give several to compare them.  [default: no file]")  # fmt: skip
@click.option("--features", metavar="FIELD,...", help="Fields to score, or auto.")
@file_options
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Draw curves and p-values as PNG or SVG; needs matplotlib.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON with all faults.")
def evaluate(
    file: Path,
    labels: str,
    settings_files: tuple[Path, ...],
    features: str | None,
    partitions: int,
    key: str | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Score FILE, whose rows are labelled, and compare alarms with labels.

    A fault is a run of labelled rows.
    """
    if plot is not None:
        check_plot(plot)
    paths = settings_files or (None,)
    settings = [settings_of_file(path, features=features) for path in paths]
    for path, own in zip(paths, settings, strict=True):
        _check_features(own, labels)
        warn_of_missing_times(str(path or "settings"), own)
    source = LabelledFile(file, labels, partitions, key)
    tell = tell_of_fields()
    logs = [
        ScoredLog(str(path or "settings"), own, tell=tell)
        for path, own in zip(paths, settings, strict=True)
    ]

    def process(records: Sequence[KafkaRecord]) -> None:
        for log in logs:
            log.process(records)

    with progress("scored") as report:
        read_file(source, settings[0].source_topics[0], partitions, process, report)
    for each in logs:
        warn_of_empty_fields(each.name, each.empty_fields)
    found = [evaluate_log(log, source.labels) for log in logs]
    if as_json:
        click.echo(orjson.dumps([each.as_dict() for each in found]))
    else:
        click.echo(evaluation_text(found))
    if plot is not None:
        plot_evaluation(found, plot)


def _check_features(settings: Settings, labels: str) -> None:
    if labels in (settings.chosen_fields or ()):
        raise SettingsError(f"setting features: expected no field {labels}, as it has the labels")
