"""`faust-oslrau compare`: score a log under two sets of settings, offline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import orjson

from faust_oslrau.app.offline.command_line import (
    chosen_log,
    log_options,
    tell_of_fields,
    warn_of_empty_fields,
    warn_of_missing_times,
)
from faust_oslrau.app.offline.comparison import compare_logs, differing_fields
from faust_oslrau.app.offline.plots import check_plot, plot_comparison
from faust_oslrau.app.offline.progress import progress
from faust_oslrau.app.offline.scored_log import ScoredLog
from faust_oslrau.app.offline.tables import comparison_text
from faust_oslrau.app.settings.command_line import broker_option, settings_of_file
from faust_oslrau.topics import KafkaRecord

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("a", type=_PATH, metavar="A.toml")
@click.argument("b", type=_PATH, metavar="B.toml")
@click.argument("files", type=_PATH, nargs=-1, metavar="[FILE]...")
@log_options
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Draw the comparison as PNG or SVG; needs matplotlib.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON with all alarms.")
@broker_option
def compare(
    a: Path,
    b: Path,
    files: tuple[Path, ...],
    plot: Path | None,
    as_json: bool,
    broker: str | None,
    **options: Any,
) -> None:
    """Score FILEs, or a topic without them, under the settings A.toml and B.toml.

    Log-likelihoods are those of the same fields only. Several files are one log.
    """
    if plot is not None:
        check_plot(plot)
    settings = [settings_of_file(path, broker=broker) for path in (a, b)]
    log = chosen_log(files, settings[0], **options)
    if files:
        for path, own in zip((a, b), settings, strict=True):
            warn_of_missing_times(str(path), own)
    tell = tell_of_fields()
    log_a, log_b = (
        ScoredLog(str(path), own, log.schemas, tell)
        for path, own in zip((a, b), settings, strict=True)
    )
    differences: dict[int, str] = {}

    def process(records: Sequence[KafkaRecord]) -> None:
        log_a.process(records)
        log_b.process(records)
        if (told := differing_fields(log_a, log_b, records)) is not None:
            differences[records[0].partition] = told

    with progress("scored twice") as report:
        log.read(process, report)
    for each in (log_a, log_b):
        warn_of_empty_fields(each.name, each.empty_fields)
    for difference in differences.values():
        click.echo(difference, err=True)
    found = compare_logs(log_a, log_b, same_fields=not differences)
    click.echo(orjson.dumps(found.as_dict()) if as_json else comparison_text(found))
    if plot is not None:
        plot_comparison(found, plot)
