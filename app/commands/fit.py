"""`faust-oslrau fit`: learn history offline, as a model for new deployments to begin with."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import click
import orjson

from faust_oslrau.app.offline.command_line import (
    tell_of_fields,
    warn_of_empty_fields,
    warn_of_missing_times,
)
from faust_oslrau.app.offline.fitting import Fit, write_model
from faust_oslrau.app.offline.input_files import JoinedInput, open_input
from faust_oslrau.app.offline.kernels import compile_kernels
from faust_oslrau.app.offline.logs import read_file
from faust_oslrau.app.offline.output_files import check_outputs
from faust_oslrau.app.offline.progress import progress
from faust_oslrau.app.settings.command_line import chosen_settings, settings_options


@click.command()
@click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True,
                metavar="FILE...")  # fmt: skip
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path),
              help="File for the model.")  # fmt: skip
@click.option("--key", metavar="COLUMN", help="Column of FILE with the message's key.")
@click.option("--features", metavar="FIELD,...", help="Fields to learn, or auto.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as a line of JSON.")
@settings_options
def fit(
    files: tuple[Path, ...],
    out: Path,
    key: str | None,
    features: str | None,
    as_json: bool,
    settings_file: Path | None,
    broker: str | None,
) -> None:
    """Learn FILEs, one after the other, and write the model.

    The setting initial_model names the file. A new deployment then begins with this model.
    """
    check_outputs({"--out": out}, [*files, settings_file])
    settings = chosen_settings(settings_file, broker=broker, features=features)
    warn_of_missing_times("fit", settings)
    source = JoinedInput([open_input(file, key) for file in files])
    run = Fit(settings, tell_of_fields())
    compile_kernels(settings)
    began = monotonic()
    with progress("learned") as report:
        read_file(source, settings.source_topics[0], 1, run.process, report)
    model = run.model()
    warn_of_empty_fields("fit", run.seen.empty)
    write_model(model, out)
    summary = {
        "records": run.records,
        "learned": model.records,
        "rejected": dict(run.rejected),
        "nodes": model.nodes,
        "fields": model.fields,
        "seconds": monotonic() - began,
    }
    if as_json:
        click.echo(orjson.dumps(summary))
        return
    click.echo(
        f"{run.records:,} records in {summary['seconds']:.1f} s: {model.records:,} valid, "
        f"{run.rejected.total():,} rejected; {model.nodes:,} nodes written to {out}"
    )
