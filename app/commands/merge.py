"""`faust-oslrau merge`: one model of the models of several partitions."""

from __future__ import annotations

from pathlib import Path

import click
import orjson

from faust_oslrau.app.offline import fitting
from faust_oslrau.app.offline.output_files import check_outputs


@click.command()
@click.argument("models", type=click.Path(path_type=Path), nargs=-1, required=True,
                metavar="MODEL...")  # fmt: skip
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path),
              help="File for the merged model.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the summary as a line of JSON.")
def merge(models: tuple[Path, ...], out: Path, as_json: bool) -> None:
    """Write the mixture of MODELs, by the records that each has learned.

    MODELs are files of fit, or snapshots of inspect --export.
    """
    check_outputs({"--out": out}, models)
    merged = fitting.merge([fitting.read_model(path) for path in models])
    fitting.write_model(merged, out)
    if as_json:
        summary = {"models": len(models), "records": merged.records, "nodes": merged.nodes}
        click.echo(orjson.dumps(summary))
        return
    click.echo(
        f"{len(models)} models of {merged.records:,} records: {merged.nodes:,} nodes written "
        f"to {out}"
    )
