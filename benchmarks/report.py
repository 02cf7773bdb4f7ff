"""Results as files: Markdown tables that end with one line of JSON, raw figures as CSV."""

from __future__ import annotations

import csv
import json
import platform
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import click

from .crossval import Run

NOISE = (
    "Timings are seconds of CPU time on a machine with other work on it, which costs caches and "
    "clock: expect tens of per cent of noise."
)
WAITING = (
    "Times are those of a clock, waiting included, on a machine with other work on it: expect tens "
    "of per cent of noise."
)
LIKELIHOODS = (
    "Log-likelihoods are exact, in nats per row, mean ± standard error over the test folds. "
    "*Native* is the model as learned, for comparison with the paper only: ties and exact "
    "dependence in the data reward collapsed variances without bound. *Honest* raises every leaf "
    "variance to 1e-4 (covariances get 1e-4 on the diagonal) when scoring; compare by it."
)

FAR = -1_000.0
"""Nats below which a few records decide a mean log-likelihood."""

Row = Mapping[str, object]


def prose(text: str) -> str:
    """Return text with each paragraph on one line."""
    return "\n\n".join(paragraph.replace("\n", " ") for paragraph in text.split("\n\n"))


def write_report(
    out: Path,
    name: str,
    paragraphs: Sequence[str],
    rows: Sequence[Row],
    figures: object,
    plots: Sequence[str] = (),
) -> None:
    """Write ``name.md``: title, text, table and plots of a command of ``benchmarks``."""
    blocks = [*paragraphs, markdown(rows), *(f"![{plot}]({plot})" for plot in plots)]
    write_page(out, name, blocks, {"figures": figures}, "benchmarks", environment())


def write_page(
    out: Path, name: str, blocks: Sequence[str], figures: Row, module: str, on: str
) -> None:
    """Write ``name.md``: title, command and what it ran on, text and tables, figures as JSON.

    From the first table on, it is shown as well.
    """
    title, *rest = blocks
    last = json.dumps({"benchmark": name, "command": command(module), **figures})
    page = [f"# {title}", f"`{command(module)}`, on {on}", *rest, last]
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.md").write_text("\n\n".join(page) + "\n")
    first = next(place for place, block in enumerate(page) if block.startswith("|"))
    click.echo("\n\n".join(block for block in page[first:] if not block.startswith("![")))


def write_runs(out: Path, name: str, runs: Sequence[Run]) -> None:
    """Write the figures of every fold as CSV below a comment with the command."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / f"{name}.csv").open("w", newline="") as file:
        file.write(f"# {command()}\n")
        writer = csv.DictWriter(file, asdict(runs[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(asdict, runs))


def command(module: str = "benchmarks") -> str:
    """Return the command line that is running."""
    return shlex.join(["python", "-m", module, *sys.argv[1:]])


def environment() -> str:
    """Name the processor and the versions that figures depend on."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "scikit-learn"))
    return f"{processor()}, Python {platform.python_version()}, {versions}."


def processor() -> str:
    """Return the processor's name as Linux knows it, or its architecture."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def markdown(rows: Sequence[Row]) -> str:
    """Lay out rows with the same columns as a table."""
    cells = [rows[0], *(row.values() for row in rows)]
    head, *body = (f"| {' | '.join(map(str, line))} |" for line in cells)
    return "\n".join([head, "|---" * len(rows[0]) + "|", *body])


def far_records(means: Mapping[tuple[str, str], float]) -> Iterator[str]:
    """Name the mean log-likelihoods, by data set and method, that a few far records decide."""
    cells = [f"{method} on {dataset}" for (dataset, method), mean in means.items() if mean < FAR]
    if cells:
        yield (
            f"Means below {FAR:,.0f} are decided by a hundredth of the records or fewer, those "
            f"furthest from what was learned: {'; '.join(cells)}."
        )


def thousands(value: float) -> str:
    """Write a count for reading."""
    return f"{value:,.0f}"
