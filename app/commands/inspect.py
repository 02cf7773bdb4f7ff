"""`faust-oslrau inspect`: list snapshots, and change where partitions continue."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from pathlib import Path
from typing import Any

import click
import orjson

from faust_oslrau.app.offline import inspection
from faust_oslrau.app.offline.inspection import Found, InspectionError, PartitionChange
from faust_oslrau.app.pipeline import changed_settings
from faust_oslrau.app.settings import Settings
from faust_oslrau.app.settings.command_line import chosen_settings, settings_options

_PIECE_BYTES = 2**20


class _Start(click.ParamType):
    name = "offset"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        # -1 stands for the start of learning.
        return -1 if value == "start" else int(click.IntRange(min=0).convert(value, param, ctx))


@click.command()
@click.option("--partition", metavar="TOPIC/N", help="One partition.  [default: all]")
@click.option("--entity", metavar="NAME", help="Show what is known of an entity.")
@click.option("--export", "target", type=click.Path(dir_okay=False, path_type=Path),
              help="Write the partition's newest snapshot to this file.")  # fmt: skip
@click.option("--import", "source", type=click.Path(dir_okay=False, path_type=Path),
              help="Continue the partition with an exported snapshot.")  # fmt: skip
@click.option("--offset", type=click.IntRange(0),
              help="With --import: where to continue.  [default: as in the snapshot]")  # fmt: skip
@click.option("--forget", is_flag=True,
              help="Discard the model and learn again; emit only what is new.")  # fmt: skip
@click.option("--reset", type=_Start(), metavar="OFFSET|start",
              help="Start a new model at this offset, and emit from there on.")  # fmt: skip
@click.option("--yes", is_flag=True, help="Make the changes instead of listing them.")
@click.option("--json", "as_json", is_flag=True, help="Print lines of JSON.")
@settings_options
def inspect(
    partition: str | None,
    entity: str | None,
    target: Path | None,
    source: Path | None,
    offset: int | None,
    forget: bool,
    reset: int | None,
    yes: bool,
    as_json: bool,
    settings_file: Path | None,
    broker: str | None,
) -> None:
    """List the snapshots of a deployment, or change where its partitions continue.

    With the list, a worker's rights on topics and its group are checked: one line on standard error
    for each that is lacking, exit code 3 if it cannot work without.
    Stop all workers before a change. Without --yes, changes are only listed.
    """
    actions = [entity is not None, target is not None, source is not None, forget,
               reset is not None]  # fmt: skip
    if sum(actions) > 1:
        raise click.UsageError("expected one of --entity, --export, --import, --forget and --reset")
    if (target or source) and partition is None:
        raise click.UsageError("--export and --import need a --partition")
    if offset is not None and source is None:
        raise click.UsageError("--offset goes with --import")
    logging.getLogger("aiokafka").addHandler(logging.NullHandler())  # errors come as exceptions
    settings = chosen_settings(settings_file, broker=broker)
    if entity is not None:
        asyncio.run(_show_entity(settings, partition, entity, as_json))
    elif target is not None:
        asyncio.run(_export(settings, partition, target))
    elif not any(actions):
        asyncio.run(_list(settings, partition, as_json))
    else:
        changes = asyncio.run(_changes(settings, partition, source, offset, reset))
        _apply(settings, changes, yes)


async def _list(settings: Settings, partition: str | None, as_json: bool) -> None:
    chosen = await inspection.partitions(settings, partition)
    now = time.time()
    has_any = False
    async for each in inspection.read_snapshots(settings, chosen):
        has_any = True
        if as_json:
            click.echo(orjson.dumps(inspection.describe(each, now)))
            continue
        click.echo(_line(each, now))
        if partition is not None and each.snapshot is not None:
            click.echo(_details(each))
    if not (has_any or as_json):
        folder = settings.snapshot_folder
        is_gone = folder is not None and not Path(folder).is_dir()
        click.echo(f"no snapshots: there is no folder {folder}" if is_gone else "no snapshots")
    for right in await inspection.check_rights(settings):
        click.echo(f"Warning: {right}", err=True)


def _line(found: Found, now: float) -> str:
    data = inspection.describe(found, now)
    line = (
        f"{data['topic']}/{data['partition']}  offset {data['next_offset']:,}  "
        f"{data['age_seconds']:,.0f} s old  {data['bytes']:,} bytes"
    )
    if found.snapshot is None:
        return f"{line}  DAMAGED: {found.problem}"
    fields = found.snapshot.fields
    columns = "no fields yet" if fields is None else f"{len(fields)} fields"
    return f"{line}  {data['records']:,} records  {data['nodes']:,} nodes  {columns}"


def _details(found: Found) -> str:
    data = inspection.describe(found, time.time())
    rows = [
        ("where", data["where"]),
        ("learned from offset", data["start"]),
        ("made by version", data["version"]),
        ("fields", ", ".join(data["fields"] or ())),
        *data["settings"].items(),
    ]
    for epoch in data["epochs"]:
        changed = changed_settings(epoch["settings"], data["settings"])
        rows.append((f"before offset {epoch['until']:,}", "; ".join(changed)))
    if data["successor"] is not None:
        start, records = data["successor"]["start"], data["successor"]["records"]
        rows.append(("to be followed", f"by a model from offset {start:,}, {records:,} records"))
    return "\n".join(f"    {name}: {value}" for name, value in rows)


async def _show_entity(
    settings: Settings, partition: str | None, entity: str, as_json: bool
) -> None:
    """Show an entity as the newest undamaged snapshot of each partition knows it."""
    chosen = await inspection.partitions(settings, partition)
    found = inspection.read_snapshots(settings, chosen, only_newest=True)
    known = list(filter(None, [inspection.describe_entity(each, entity) async for each in found]))
    if not known:
        raise InspectionError(f"no snapshot knows the entity {entity}")
    for data in known:
        click.echo(orjson.dumps(data) if as_json else entity_text(data))


def entity_text(data: dict[str, Any]) -> str:
    """Return an entity as lines of text: how unusual it is, and its values by field."""
    p_value = data["entity_p_value"]
    unusual = "not comparable yet" if math.isnan(p_value) else f"p-value {p_value:.2g}"
    first = f"{data['topic']}/{data['partition']}  offset {data['next_offset']:,}  {unusual}"
    rows: list[tuple[str, ...]] = [
        ("field", "values", "level", "usual", "spread", "usual", "next value")
    ]
    rows += [_entity_row(field) for field in data["fields"]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
             for row in rows]  # fmt: skip
    return "\n".join([first, *(f"    {line.rstrip()}" for line in lines)])


def _entity_row(field: dict[str, Any]) -> tuple[str, ...]:
    numbers = (field[name] for name in ("level", "usual_level", "spread", "usual_spread"))
    after = f"{field['expected']:.4g} \u00b1 {field['deviation']:.2g}"
    return (field["field"], f"{field['n_values']:,.0f}", *(f"{x:.4g}" for x in numbers), after)


async def _export(settings: Settings, partition: str | None, target: Path) -> None:
    chosen = await inspection.partitions(settings, partition)
    offset = None
    async for each in inspection.read_snapshots(settings, chosen, only_newest=True):
        if each.snapshot is not None:
            _write(each, target)
            offset = each.stored.next_offset
    if offset is None:
        raise InspectionError(f"{partition} has no snapshot")
    click.echo(f"{partition} at offset {offset} written to {target}")


def _write(found: Found, target: Path) -> None:
    try:
        with target.open("wb") as file:
            file.writelines(found.stored.data.pieces(_PIECE_BYTES))
    except OSError as error:
        raise InspectionError(f"file {target}: {error.strerror}") from error


async def _changes(
    settings: Settings,
    partition: str | None,
    source: Path | None,
    offset: int | None,
    reset: int | None,
) -> list[PartitionChange]:
    chosen = await inspection.partitions(settings, partition)
    positions = await inspection.positions(settings, chosen)
    if source is not None:
        snapshot = inspection.read_file(source)
        return [inspection.seed(snapshot, position, offset, settings) for position in positions]
    if reset is not None:
        to = None if reset < 0 else reset
        return [inspection.reset(position, to) for position in positions]
    return [inspection.forget(position) for position in positions]


def _apply(settings: Settings, changes: list[PartitionChange], yes: bool) -> None:
    for change in changes:
        click.echo(_description(change))
    if yes:
        asyncio.run(inspection.apply(settings, changes))
        click.echo("done")
    else:
        click.echo("nothing is changed without --yes")


def _description(change: PartitionChange) -> str:
    partition = f"{change.tp.topic}/{change.tp.partition}"
    if change.snapshot is not None:
        records = f"{change.snapshot.records:,} records"
        return f"{partition}: continues at offset {change.offset} with a model of {records}"
    if change.offset is None:
        return f"{partition}: discards its snapshots and learns again from its start"
    return (
        f"{partition}: discards its snapshots, starts a new model and emits from offset "
        f"{change.offset}"
    )
