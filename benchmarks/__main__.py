"""Command line of the benchmarks: ``python -m benchmarks COMMAND``."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from pathlib import Path

import click

from . import baselines, blame, metrics, speed, studies, table1, toy
from .datasets import N_FOLDS, PAPER_SETS
from .plan import FOLDER, RESULTS, Plan

Benchmark = Callable[[Plan], None]

BENCHMARKS: dict[str, Benchmark] = {
    "table1": table1.run,
    "threshold": studies.threshold,
    "leaf-size": studies.leaf_size,
    "early-stop": studies.early_stop,
    "toy": toy.run,
    "baselines": baselines.run,
    "speed": speed.run,
    "metrics": metrics.run,
    "blame": lambda plan: blame.run(plan.out, quick=False),
}

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
PATH = click.Path(path_type=Path)
OPTIONS = [
    click.option(
        "--datasets", "folder", envvar="OSLRAU_DATASETS", default=FOLDER, type=PATH,
        help="Folder of the paper's data sets; those missing are skipped. [env: OSLRAU_DATASETS]",
    ),
    click.option(
        "--dataset", "names", multiple=True, type=click.Choice(PAPER_SETS),
        help="A data set of the paper, repeatable; without it and --data, all.",
    ),
    click.option(
        "--data", "files", multiple=True, type=FILE,
        help="Any CSV, npz or Parquet file, repeatable.",
    ),
    click.option("--folds", default=N_FOLDS, show_default=True, help="Test folds."),
    click.option(
        "--large-folds", default=1, show_default=True,
        help="Test folds of data sets of a million rows or more.",
    ),
    click.option(
        "--out", default=RESULTS, type=PATH, help="Folder of the results."
    ),
]  # fmt: skip


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Reproduce the paper's experiments, compare with baselines, measure speed."""


def command(name: str, benchmark: Benchmark) -> click.Command:
    """Make a command that hands the options to the benchmark as a plan."""

    def callback(names: tuple[str, ...], files: tuple[Path, ...], **rest: object) -> None:
        benchmark(Plan(names=names or (() if files else PAPER_SETS), files=files, **rest))

    decorated = reduce(lambda function, option: option(function), reversed(OPTIONS), callback)
    return click.command(name, help=benchmark.__doc__)(decorated)


def everything(plan: Plan) -> None:
    """Run all of the others, one after the other."""
    for benchmark in BENCHMARKS.values():
        benchmark(plan)


for name, benchmark in [*BENCHMARKS.items(), ("all", everything)]:
    main.add_command(command(name, benchmark))

if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
