"""`faust-oslrau replay`: score a file, or a range of a topic, without a worker."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import click
import orjson

from faust_oslrau.app.errors import OslrauError, SettingsError
from faust_oslrau.app.offline.command_line import (
    chosen_log,
    log_options,
    tell_of_fields,
    tell_of_left_out,
    warn_of_empty_fields,
    warn_of_missing_times,
)
from faust_oslrau.app.offline.encoding import ProducedRows
from faust_oslrau.app.offline.inspection import InspectionError, earlier_epochs
from faust_oslrau.app.offline.kernels import compile_kernels
from faust_oslrau.app.offline.output_files import (
    DeadLetterFile,
    Discard,
    NdjsonFile,
    check_outputs,
    open_scores,
)
from faust_oslrau.app.offline.progress import progress
from faust_oslrau.app.offline.replay import Replay, Replayed, Schemas, Sink
from faust_oslrau.app.offline.told_lines import rejection_told
from faust_oslrau.app.pipeline import Epochs
from faust_oslrau.app.settings import Settings
from faust_oslrau.app.settings.command_line import chosen_settings, settings_options


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path),
              help="File for the scores: .parquet is Parquet, any other NDJSON.")  # fmt: skip
@click.option("--anomalies", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="NDJSON file for the anomalies, incidents and other events.")  # fmt: skip
@click.option("--dead-letters", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="NDJSON file for the rejected records and their reasons.")  # fmt: skip
@log_options
@click.option("--features", metavar="FIELD,...", help="Fields to score, or auto.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as a line of JSON.")
@settings_options
def replay(
    file: Path | None,
    out: Path,
    anomalies: Path | None,
    dead_letters: Path | None,
    features: str | None,
    as_json: bool,
    settings_file: Path | None,
    broker: str | None,
    **options: Any,
) -> None:
    """Score FILE, or a topic without it, as a worker with the same settings would.

    The scores equal the worker's to the bit, also those from before a model's settings changed, as
    its snapshot tells. Rows of a file have the times of the setting time. In a format with schemas
    they go through the latest one of the topic.
    """
    outputs = {"--out": out, "--anomalies": anomalies, "--dead-letters": dead_letters}
    check_outputs(outputs, [file, settings_file])
    settings = chosen_settings(settings_file, broker=broker, features=features)
    log = chosen_log([] if file is None else [file], settings, **options)
    schemas: Schemas | None = log.schemas
    rows: ProducedRows | None = None
    epochs = _earlier_epochs(settings, log.topic) if log.source is None else {}
    if log.source is not None:
        warn_of_missing_times("replay", settings)
        if settings.uses_registry:
            schemas = rows = ProducedRows(log.source, settings, log.topic)
            log = replace(log, source=rows)
    with ExitStack() as files:
        scores = files.enter_context(open_scores(out))
        alerts: Sink = Discard()
        letters: Sink = Discard()
        if anomalies is not None:
            alerts = files.enter_context(NdjsonFile(anomalies))
        if dead_letters is not None:
            letters = files.enter_context(DeadLetterFile(dead_letters))
        run = Replay(settings, scores, alerts, letters, schemas, tell_of_fields(), epochs)
        compile_kernels(settings)
        began = monotonic()
        with progress("scored") as report:
            log.read(run.process, report)
    run.finish()
    tell_of_left_out(() if rows is None else rows.left_out)
    warn_of_empty_fields("replay", run.seen.empty)
    _summarise(run.replayed, out, monotonic() - began, as_json)


def _earlier_epochs(settings: Settings, topic: str) -> dict[tuple[str, int], Epochs]:
    """Return what snapshots tell of former settings; a warning if they cannot be read."""
    try:
        return asyncio.run(earlier_epochs(settings, topic))
    except (InspectionError, SettingsError) as error:
        told = "former settings, if there were any, do not count"
        click.echo(f"Warning: {error}: {told}", err=True)
        return {}


def _summarise(replayed: Replayed, out: Path, seconds: float, as_json: bool) -> None:
    if as_json:
        click.echo(orjson.dumps({**replayed.as_dict(), "seconds": seconds}))
    else:
        click.echo(_counts(replayed, out, seconds))
    if replayed.records and not replayed.scored:
        raise OslrauError(f"no record was scored{rejection_told(replayed.first_rejection)}")


def _counts(replayed: Replayed, out: Path, seconds: float) -> str:
    rejected = ", ".join(f"{reason} {n:,}" for reason, n in sorted(replayed.rejected.items()))
    return (
        f"{replayed.records:,} records in {seconds:.1f} s: {replayed.scored:,} scored to {out}, "
        f"{replayed.anomalies:,} anomalies, {replayed.incidents:,} incidents, "
        f"{replayed.rejected.total():,} rejected"
        + (f" ({rejected})" if rejected else "")
        + (rejection_told(replayed.first_rejection) if replayed.scored else "")
    )
