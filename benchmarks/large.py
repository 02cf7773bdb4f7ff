"""Stand-ins for the paper's large data sets: time and memory of one pass through ``--data``."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track

from faust_oslrau.learner import OSLRAU, compile_kernels

from .crossval import DEFAULT_BATCH, HONEST_FLOOR
from .datasets import Array, load_file
from .report import NOISE, prose, thousands, write_report
from .worker_memory import megabytes


class Shape(NamedTuple):
    """Records, variables and clusters of a set."""

    records: int
    variables: int
    clusters: int


SHAPES = {
    "Voxforge": Shape(3_603_643, 39, 8),
    "Power": Shape(2_049_280, 4, 8),
    "Network": Shape(434_873, 3, 4),
    "GasSen": Shape(8_386_765, 16, 8),
    "MSD": Shape(515_344, 90, 4),
    "GasSenH": Shape(928_991, 10, 4),
}
"""Records and variables are those of the paper's table of large data sets."""

QUICK_SHARE = 500
"""By which ``--quick`` divides the records."""

CHUNK = 100_000
"""Records that are generated at a time."""

FACTORS = 3
"""Which the variables of a cluster have in common."""

SCORED = 10_000
"""Test records that are scored."""

TEXT = f"""\
The paper's large sets are not part of this project. Each has a generated stand-in here with as many
records and variables: clusters, in each of which the variables follow {FACTORS} factors. It is
written to a file and read as `--data` reads it; then its first test fold is left out and the others
are learned by `OSLRAU()` in one pass, in mini-batches of {DEFAULT_BATCH}, on one core.
*Seconds* are CPU time: to read and
standardise the file, and to learn. *Memory* is the most that the process held, the file's records
included. The log-likelihood, in nats with the honest floor, is that of {SCORED:,} test records; it
says nothing about the real set."""


@dataclass(frozen=True)
class Pass:
    """A pass over a stand-in; memory is in bytes."""

    dataset: str
    records: int
    variables: int
    read_seconds: float
    learn_seconds: float
    nodes: int
    memory: int
    log_likelihood: float


def run(out: Path, quick: bool, names: tuple[str, ...] = ()) -> None:
    """Whether sets as large as the paper's end: time, memory and size on generated stand-ins."""
    passes = list(measure(names or tuple(SHAPES), QUICK_SHARE if quick else 1))
    write_report(
        out, "large", ["Large data sets", prose(TEXT), NOISE],
        [row(each) for each in passes], [asdict(each) for each in passes],
    )  # fmt: skip


def measure(names: tuple[str, ...], share: int) -> Iterator[Pass]:
    """Learn each stand-in in a process of its own, whose memory is its own."""
    with TemporaryDirectory() as folder:
        for name in names:
            path, shape = Path(folder) / f"{name}.npz", SHAPES[name]
            np.savez(path, x=stand_in(shape._replace(records=shape.records // share)))
            began = perf_counter()
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                yield pool.submit(one_pass, path).result()
            Console(stderr=True).print(f"{name}: {perf_counter() - began:.0f} s")
            path.unlink()


def stand_in(shape: Shape) -> Array:
    """Draw clusters (n, d) of variables that follow common factors."""
    rng = np.random.default_rng(0)
    k, d = shape.clusters, shape.variables
    centres, loadings = 3.0 * rng.normal(size=(k, d)), rng.normal(size=(k, FACTORS, d))
    x = np.empty((shape.records, d))
    for start in range(0, shape.records, CHUNK):
        rows = x[start : start + CHUNK]
        member = rng.integers(k, size=len(rows))
        rows[:] = centres[member] + rng.normal(scale=0.5, size=rows.shape)
        rows += np.einsum("nf,nfd->nd", rng.normal(size=(len(rows), FACTORS)), loadings[member])
    return x


def one_pass(path: Path) -> Pass:
    """Read a file and learn all of its folds but the first, with a progress bar."""
    began = process_time()
    dataset = load_file(path)
    read, (n, d) = process_time(), dataset.x.shape
    model = OSLRAU()
    compile_kernels()
    compiled = process_time()
    for rows in track(dataset.train(1), path.stem, total=9, console=Console(stderr=True)):
        model.partial_fit(rows, batch_size=DEFAULT_BATCH)
    learned = process_time()
    test = dataset.test(1)[:SCORED]
    return Pass(
        path.stem, n, d, read - began, learned - compiled, model.n_nodes_,
        1_000_000 * megabytes("VmHWM"),  # getrusage begins with the parent's
        float(model.score_samples(test, variance_floor=HONEST_FLOOR).mean()),
    )  # fmt: skip


def row(each: Pass) -> dict[str, object]:
    return {
        "stand-in for": each.dataset,
        "records x variables": f"{each.records:,} x {each.variables}",
        "read, s": f"{each.read_seconds:.1f}",
        "learn, s": f"{each.learn_seconds:.1f}",
        "records/s": thousands(0.9 * each.records / each.learn_seconds),
        "nodes": thousands(each.nodes),
        "memory, MB": thousands(each.memory / 1e6),
        "log-likelihood": f"{each.log_likelihood:.2f}",
    }
