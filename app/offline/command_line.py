"""The command-line options of the commands that read a log: files, or a range of a topic."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from faust_oslrau.app.pipeline import needs_times
from faust_oslrau.app.settings import Settings, short
from faust_oslrau.topics import KafkaRecord
from faust_oslrau.topics.fields import listed

from .input_files import InputFile, JoinedInput, open_input
from .log_schemas import LogSchemas
from .logs import Process, read_file, read_topic, topic_partitions
from .partitioner import MOST_PARTITIONS
from .progress import Report
from .replay import Tell
from .told_lines import MOST_DETAIL, printable

Command = Callable[..., Any]

# Some forty names.
_MOST_TOLD = 4 * MOST_DETAIL


class _End(click.ParamType):
    name = "offset"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | None:
        return None if value == "end" else click.IntRange(min=0).convert(value, param, ctx)


_FILE_OPTIONS = (
    click.option("--partitions", type=click.IntRange(1, MOST_PARTITIONS), default=1,
                 show_default=True, help="Partitions for the rows of FILE, as by produce."),
    click.option("--key", metavar="COLUMN", help="Column of FILE with the message's key."),
)  # fmt: skip
_TOPIC_OPTIONS = (
    click.option("--topic", help="Topic to read, or topic name for the rows of FILE.  "
                 "[default: the first source topic]"),
    click.option("--from", "start", type=click.IntRange(0), metavar="OFFSET",
                 help="First offset of each partition.  [default: the oldest]"),
    click.option("--to", "end", type=_End(), default="end", show_default=True,
                 metavar="OFFSET|end", help="Offset before which each partition ends."),
)  # fmt: skip


def file_options(command: Command) -> Command:
    """Add the options --partitions and --key to a command."""
    for option in reversed(_FILE_OPTIONS):
        command = option(command)
    return command


def log_options(command: Command) -> Command:
    """Add the options of `chosen_log` to a command."""
    for option in reversed(_TOPIC_OPTIONS):
        command = option(command)
    return file_options(command)


@dataclass(frozen=True, slots=True)
class Log:
    """Files, or a range of a topic without them; `settings` name the broker.

    `schemas` are those of a topic's records; None where these are JSON, as rows of files are.
    """

    settings: Settings
    source: InputFile | None
    topic: str
    partitions: int
    start: int | None
    end: int | None
    schemas: LogSchemas | None = None

    def as_json(self, records: Sequence[KafkaRecord]) -> Sequence[KafkaRecord]:
        """Return the latest records of one partition with JSON as their values, None for none."""
        if self.schemas is None:
            return records
        return self.schemas.translator(records[0].topic, records[0].partition).translate(records)[0]

    def count_partitions(self) -> int:
        """Return how many partitions the topic has, or rows of files are spread over."""
        if self.source is not None:
            return self.partitions
        return asyncio.run(topic_partitions(self.topic, self.settings))

    def read(self, process: Process, report: Report) -> None:
        """Process the whole log, in lists of records of one partition."""
        if self.source is not None:
            read_file(self.source, self.topic, self.partitions, process, report)
            return
        logging.getLogger("aiokafka").addHandler(logging.NullHandler())  # errors are exceptions
        asked = (self.topic, self.start, self.end, self.settings)
        asyncio.run(read_topic(*asked, process, report, self.schemas))


def chosen_log(
    files: Sequence[Path],
    settings: Settings,
    *,
    partitions: int,
    key: str | None,
    topic: str | None,
    start: int | None,
    end: int | None,
) -> Log:
    """Return the log that the arguments and options of a command choose.

    Several files are one log, in their order.

    Raises
    ------
    click.UsageError
        A range of offsets is chosen for files.
    InputFileError
        A file cannot be read.
    SettingsError
        The format of the topic's records needs a library that is missing.
    """
    if files and (start, end) != (None, None):
        raise click.UsageError("--from and --to need a topic, not a FILE")
    source = JoinedInput([open_input(file, key) for file in files]) if files else None
    schemas = LogSchemas(settings) if settings.uses_registry and not files else None
    topic = topic or settings.source_topics[0]
    return Log(settings, source, topic, partitions, start, end, schemas)


def tell_of_fields() -> Tell:
    """Return what prints a line on stderr, unless another partition or log has had the same."""
    printed: set[str] = set()

    def tell(partition: str, line: str) -> None:
        if line not in printed:
            printed.add(line)
            click.echo(printable(f"{partition}: {line}", _MOST_TOLD), err=True)

    return tell


def tell_of_left_out(columns: Iterable[str]) -> None:
    """Print a line on stderr if columns of a file are not in the schema of its rows."""
    # names of a file, which may not be safe for a terminal
    names = [name if name.isprintable() else ascii(name) for name in sorted(columns)]
    if names:
        click.echo(f"not in the schema, left out: {listed(names)}", err=True)


def warn_of_missing_times(name: str, settings: Settings) -> None:
    """Print a line on stderr if settings need times, which the rows of files do not have."""
    if settings.time is None and needs_times(settings):
        click.echo(
            f"{name}: rows of a file have no times; seasons, silences, rates and a history over "
            "need the setting time, the name of a field with them",
            err=True,
        )


def warn_of_empty_fields(name: str, fields: Sequence[str]) -> None:
    """Print a line on stderr if there are fields that no scored record has."""
    if fields:
        names = short(", ".join(fields))
        click.echo(f"{name}: no scored record has a value of {names}", err=True)
