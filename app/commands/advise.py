"""`faust-oslrau advise`: write a settings file for a log, with its reasons."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from faust_oslrau.app.errors import OslrauError
from faust_oslrau.app.offline.advice import Advisor
from faust_oslrau.app.offline.advised_file import advised_file
from faust_oslrau.app.offline.command_line import chosen_log, log_options
from faust_oslrau.app.offline.progress import progress
from faust_oslrau.app.settings.command_line import chosen_settings, settings_options
from faust_oslrau.topics import KafkaRecord

_RECORDS = 20_000


class _EnoughError(Exception):
    """As many records were read as are wanted."""


@click.command()
@click.argument("files", type=click.Path(path_type=Path), nargs=-1, metavar="[FILE]...")
@log_options
@click.option("--records", "most", type=click.IntRange(1000), default=_RECORDS, show_default=True,
              help="Records to read.")  # fmt: skip
@click.option("--alerts-a-day", "alerts", type=click.FloatRange(0, min_open=True), metavar="N",
              help="Alerts a day of usual records that someone can bear.")  # fmt: skip
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="File to write.  [default: standard output]")  # fmt: skip
@settings_options
def advise(
    files: tuple[Path, ...],
    most: int,
    alerts: float | None,
    out: Path | None,
    settings_file: Path | None,
    broker: str | None,
    **options: Any,
) -> None:
    """Try settings on FILEs, or on a topic without them, and write those that pay.

    What --settings has stays as it is.
    """
    settings = chosen_settings(settings_file, broker=broker)
    log = chosen_log(files, settings, **options)
    if out is not None and out.exists():
        raise click.UsageError(f"--out {out}: expected a file that is not there yet")
    records: list[KafkaRecord] = []

    def process(some: Sequence[KafkaRecord]) -> None:
        records.extend(log.as_json(some[: most - len(records)]))
        if len(records) == most:
            raise _EnoughError

    with progress("read") as report, suppress(_EnoughError):
        log.read(process, report)
    records.sort(key=lambda record: record.partition)
    # Partitions of a topic are read one after the other, rows of files are spread over them.
    partitions = log.count_partitions() if len(records) == most and not files else None
    advisor = Advisor(
        records, settings, lambda what: click.echo(f"trying {what}", err=True), partitions
    )
    source = ", ".join(map(str, files)) or log.topic
    text = advised_file(advisor.advise(alerts), len(records), source)
    if out is None:
        click.echo(text, nl=False)
        return
    try:
        out.write_text(text)
    except OSError as error:
        raise OslrauError(f"{out}: {error.strerror or error}") from None
