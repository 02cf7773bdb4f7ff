"""Command line of the benchmarks: ``python -m benchmarks COMMAND``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path

import click

from . import (
    advised,
    alarms,
    baselines,
    blame,
    calibration,
    codecs,
    comparison,
    counts,
    density,
    detection,
    drift,
    entities,
    entity_alarms,
    fields,
    floor,
    forecasts,
    formats,
    goals,
    habits,
    incidents,
    large,
    late,
    metrics,
    quality,
    ranking,
    rates,
    readout,
    relevance,
    seasons,
    sequence_cost,
    sequences,
    silence,
    soon,
    speed,
    studies,
    table1,
    toy,
    transforms,
    upkeep,
    wide,
)
from .datasets import N_FOLDS, PAPER_SETS
from .learners import LEARNERS
from .plan import FOLDER, RESULTS, Plan

Benchmark = Callable[[Plan], None]
Option = Callable[[Callable[..., None]], Callable[..., None]]

BENCHMARKS: dict[str, Benchmark] = {
    "table1": table1.run,
    "threshold": studies.threshold,
    "leaf-size": studies.leaf_size,
    "early-stop": studies.early_stop,
    "toy": toy.run,
    "baselines": baselines.run,
    "speed": speed.run,
    "metrics": metrics.run,
    "floor": floor.run,
    "density": density.run,
}

STREAM_BENCHMARKS: dict[str, Callable[..., None]] = {
    "quality": quality.run,
    "ranking": ranking.run,
    "detection": detection.run,
    "large": large.run,
    "drift": drift.run,
    "soon": soon.run,
    "calibration": calibration.run,
    "blame": blame.run,
    "alarms": alarms.run,
    "incidents": incidents.run,
    "goals": goals.run,
    "transforms": transforms.run,
    "entities": entities.run,
    "entity-alarms": entity_alarms.run,
    "advised": advised.run,
    "counts": counts.run,
    "fields": fields.run,
    "formats": formats.run,
    "codecs": codecs.run,
    "wide": wide.run,
    "sequences": sequences.run,
    "sequence-cost": sequence_cost.run,
    "forecasts": forecasts.run,
    "seasons": seasons.run,
    "rates": rates.run,
    "silence": silence.run,
    "upkeep": upkeep.run,
    "readout": readout.run,
    "habits": habits.run,
    "relevance": relevance.run,
    "late": late.run,
}
"""Those that generate their streams; each takes ``out`` and ``quick``."""

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
PATH = click.Path(path_type=Path)
DATA = click.option(
    "--data", "files", multiple=True, type=FILE,
    help="Any CSV, npz or Parquet file, repeatable.",
)  # fmt: skip
OUT = click.option("--out", default=RESULTS, type=PATH, help="Folder of the results.")
QUICK = click.option("--quick", is_flag=True, help="Small sizes, to try a benchmark out.")
DATASETS = click.option(
    "--datasets", "folder", envvar="OSLRAU_DATASETS", default=FOLDER, type=PATH,
    help="Folder of the data sets; those missing are skipped. [env: OSLRAU_DATASETS]",
)  # fmt: skip
OPTIONS = [
    DATASETS,
    click.option(
        "--dataset", "names", multiple=True, type=click.Choice(PAPER_SETS),
        help="A data set of the paper, repeatable; without it and --data, all.",
    ),
    DATA,
    click.option("--folds", default=N_FOLDS, show_default=True, help="Test folds."),
    click.option(
        "--large-folds", default=1, show_default=True,
        help="Test folds of data sets of a million rows or more.",
    ),
    OUT,
]  # fmt: skip
READOUT = [
    click.option("--final", is_flag=True, help="Look at the families kept for the end."),
    click.option(
        "--learner", default="oslrau", show_default=True, type=click.Choice([*LEARNERS]),
        help="The learner below the readout.",
    ),
]  # fmt: skip
STAND_INS = click.option(
    "--set", "names", multiple=True, type=click.Choice([*large.SHAPES]),
    help="A set to stand in for, repeatable; without it, all.",
)  # fmt: skip
MORE_OPTIONS = {
    "calibration": [DATA],
    "sequences": [DATA],
    "ranking": [DATASETS],
    "detection": [DATASETS],
    "large": [STAND_INS],
    "readout": READOUT,
}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Reproduce the paper's experiments, compare with baselines, measure speed."""


def command(name: str, benchmark: Benchmark) -> click.Command:
    """Make a command that hands the options to the benchmark as a plan."""

    def callback(names: tuple[str, ...], files: tuple[Path, ...], **rest: object) -> None:
        benchmark(Plan(names=names or (() if files else PAPER_SETS), files=files, **rest))

    return with_options(name, callback, benchmark.__doc__, OPTIONS)


def with_options(
    name: str, callback: Callable[..., None], text: str | None, options: Sequence[Option]
) -> click.Command:
    decorated = reduce(lambda function, option: option(function), reversed(options), callback)
    return click.command(name, help=text)(decorated)


def everything(plan: Plan) -> None:
    """Run all of the others, one after the other."""
    for benchmark in BENCHMARKS.values():
        benchmark(plan)
    for stream_benchmark in STREAM_BENCHMARKS.values():
        if stream_benchmark is not readout.run:  # whose last families are not for every run
            stream_benchmark(out=plan.out, quick=False)


for name, benchmark in [*BENCHMARKS.items(), ("all", everything)]:
    main.add_command(command(name, benchmark))
for name, stream_benchmark in STREAM_BENCHMARKS.items():
    options = [
        OUT,
        QUICK,
        *MORE_OPTIONS.get(name, []),
    ]
    main.add_command(with_options(name, stream_benchmark, stream_benchmark.__doc__, options))

main.add_command(with_options("comparison", comparison.run, comparison.run.__doc__, [OUT]))

if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
