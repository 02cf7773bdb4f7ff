"""`faust-oslrau tail`: follow what a worker writes, a line for each message."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import re
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import click

from faust_oslrau.app.errors import OslrauError
from faust_oslrau.app.offline.following import file_messages, topic_messages
from faust_oslrau.app.offline.log_schemas import LogSchemas
from faust_oslrau.app.offline.told import MessageReader, Told, as_json
from faust_oslrau.app.offline.told_lines import SEVERITY_COLOURS, line
from faust_oslrau.app.registry import MessageSchemas
from faust_oslrau.app.settings import Settings
from faust_oslrau.app.settings.command_line import chosen_settings, settings_options
from faust_oslrau.topics import KafkaRecord

_DURATION = re.compile(r"(\d+)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SEVERITIES = tuple(SEVERITY_COLOURS)


class _Since(click.ParamType):
    name = "time"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return milliseconds since 1970; 0 stands for the beginning of a topic."""
        text = str(value)
        if text == "earliest":
            return 0
        if found := _DURATION.fullmatch(text):
            return max(1, int(1000 * (time.time() - int(found[1]) * _SECONDS[found[2]])))
        try:
            return max(1, int(1000 * datetime.fromisoformat(text).timestamp()))
        except (ValueError, OverflowError):
            self.fail(f"expected earliest, a duration such as 10m or 2h, or a time such as "
                      f"2026-01-31T12:00:00Z, got {text!r}", param, ctx)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Filter:
    """Chooses messages; None chooses all."""

    entity: str | None
    field: str | None
    severity: str | None

    def takes(self, told: Told) -> bool:
        return (
            self.entity in (None, told.entity)
            and (self.field is None or self.field in told.fields)
            and (self.severity is None or self._is_severe(told))
        )

    def _is_severe(self, told: Told) -> bool:
        found = told.message and told.message.severity_name
        return found in _SEVERITIES[_SEVERITIES.index(self.severity or "minor") :]


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--topic", "topics", multiple=True,
              help="Topic to follow; may be repeated.  [default: the anomalies]")  # fmt: skip
@click.option("--since", type=_Since(), metavar="TIME",
              help="Begin here: a duration such as 10m or 2h, a time in ISO 8601, or earliest.  "
              "[default: now; a file's beginning]")  # fmt: skip
@click.option("--entity", metavar="NAME", help="Only messages of this entity, or with this key.")
@click.option("--field", metavar="NAME", help="Only messages that blame this field.")
@click.option("--severity", type=click.Choice(_SEVERITIES),
              help="Only incidents that are at least so severe.")  # fmt: skip
@click.option("--json", "as_lines", is_flag=True, help="Print the messages, one a line.")
@settings_options
def tail(
    file: Path | None,
    topics: tuple[str, ...],
    since: int | None,
    entity: str | None,
    field: str | None,
    severity: str | None,
    as_lines: bool,
    settings_file: Path | None,
    broker: str | None,
) -> None:
    """Print what a worker writes as it comes, or a FILE of `replay`: what happened, where and when.

    Times are local. A topic is followed until Ctrl-C.
    """
    if file is not None and topics:
        raise click.UsageError("expected a FILE or --topic, not both")
    if isinstance(sys.stdout, io.TextIOWrapper):  # not every terminal knows every character
        sys.stdout.reconfigure(errors="backslashreplace")
    logging.getLogger("aiokafka").addHandler(logging.NullHandler())  # errors come as exceptions
    settings = chosen_settings(settings_file, broker=broker)
    printer = _Printer(settings, _Filter(entity, field, severity), as_lines)
    with suppress(KeyboardInterrupt):
        if file is not None:
            _print_file(file, since or 0, printer)
        else:
            names = topics or (settings.anomalies_topic,)
            asyncio.run(_follow(topic_messages(names, since, settings), printer, settings))


class _Printer:
    """Prints the messages that a filter takes."""

    def __init__(self, settings: Settings, chosen: _Filter, as_lines: bool) -> None:
        self._settings = settings
        self._reader = MessageReader(settings.entity)
        self._chosen = chosen
        self._as_lines = as_lines
        self._color = False if os.environ.get("NO_COLOR") else None  # None: on a terminal

    def read(self, record: KafkaRecord) -> Told:
        return self._reader.read(record)

    def show(self, record: KafkaRecord, told: Told) -> None:
        if self._chosen.takes(told):
            text = as_json(record) if self._as_lines else line(told, self._address(told))
            click.echo(text, color=self._color)

    def _address(self, told: Told) -> str | None:
        if told.message is None or told.message.incident is None:
            return None
        return self._settings.incident_address(told.message.incident)


def _print_file(file: Path, since: int, printer: _Printer) -> None:
    """Print the messages of a file that have a time of at least `since`; 0 takes all."""
    with_time = set[bool]()
    for record in file_messages(file):
        told = printer.read(record)
        with_time.add(told.timestamp is not None)
        if since == 0 or (told.timestamp is not None and told.timestamp >= since):
            printer.show(record, told)
    if since and with_time == {False}:
        raise OslrauError(f"{file}: --since needs messages with a time, these have none")


async def _follow(
    messages: AsyncGenerator[KafkaRecord, None], printer: _Printer, settings: Settings
) -> None:
    sources = LogSchemas(settings) if settings.uses_registry else None
    outputs = MessageSchemas(settings)
    closing = aclosing(sources) if sources else nullcontext()
    async with aclosing(messages), aclosing(outputs), closing:
        async for record in messages:
            schemas = sources if record.topic in settings.source_topics else outputs
            shown = await schemas.read(record) if schemas else record
            printer.show(shown, printer.read(shown))
