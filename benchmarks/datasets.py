"""Data sets with folds, and the settings that the paper's authors chose for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

Array = NDArray[np.float64]

N_FOLDS = 10
LARGE = 1_000_000
"""Rows from which a data set is cross-validated on fewer folds by default."""

PAPER_SETS = ("quake", "banknote", "abalone", "kinematics", "ca", "sensorless", "flow_size")
"""The data sets of the paper's Table 1, smallest first within a setting."""


class Setting(NamedTuple):
    """How a data set is learned: mini-batch, and the authors' mergebatch and mvmaxscope."""

    batch_size: int
    min_count: int
    max_leaf_vars: int


def paper_setting(n: int, d: int) -> Setting:
    """Choose by rows and variables; gives the authors' choice for every set of Table 1."""
    max_leaf_vars = 0 if d <= 4 else 4
    if n < 5_000:
        return Setting(1, 10, max_leaf_vars)
    if n < 20_000:
        return Setting(10, 10, max_leaf_vars)
    return Setting(256, 256, max_leaf_vars)


@dataclass(frozen=True)
class Dataset:
    """Rows ``x`` (n, d), each in one ``fold`` of 1..10."""

    name: str
    x: Array
    fold: NDArray[np.int8]

    @property
    def setting(self) -> Setting:
        return paper_setting(*self.x.shape)

    def train(self, test_fold: int) -> Iterator[Array]:
        """Yield the folds after the test fold, then those before it (authors' code).

        Mini-batches restart with each.
        """
        for step in range(1, N_FOLDS):
            yield self.x[self.fold == (test_fold + step - 1) % N_FOLDS + 1]

    def test(self, test_fold: int) -> Array:
        return self.x[self.fold == test_fold]


def load_paper_set(path: Path) -> Dataset:
    """Read ``x`` and ``fold`` of an npz file, standardised and split by the paper's authors."""
    with np.load(path) as arrays:
        return Dataset(path.stem, np.ascontiguousarray(arrays["x"], np.float64), arrays["fold"])


def load_file(path: Path) -> Dataset:
    """Read the numeric columns of a CSV, npz or Parquet file, standardise them and draw folds.

    Rows keep their order within a fold. Those with missing values are left out, as not every
    baseline can take them.
    """
    readers = {".csv": read_csv, ".npz": read_npz, ".parquet": read_parquet}
    if path.suffix not in readers:
        raise click.BadParameter(f"{path}: expected a name that ends in {', '.join(readers)}")
    x = readers[path.suffix](path)
    complete = np.isfinite(x).all(axis=1)
    if not complete.all():
        click.echo(f"{path.name}: {(~complete).sum()} rows with missing values left out", err=True)
    x = standardise(x[complete])
    fold = np.random.default_rng(0).permutation(len(x)) % N_FOLDS + 1
    return Dataset(path.stem, x, fold.astype(np.int8))


def standardise(x: Array) -> Array:
    """Mean 0 and deviation 1 over all rows, as the paper's sets are; constants become 0."""
    deviation = x.std(axis=0, ddof=1)
    return (x - x.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)


def read_npz(path: Path) -> Array:
    """Take the array ``x``, or the only one."""
    with np.load(path) as arrays:
        name = "x" if "x" in arrays.files else arrays.files[0]
        return np.asarray(arrays[name], np.float64)


def read_csv(path: Path) -> Array:
    """Take the numeric columns, below a header line or without one."""
    with path.open() as file:
        cells = file.readline().rstrip("\n").split(",")
    headless = any(map(is_number, cells))
    return numeric_columns(
        pyarrow.csv.read_csv(path, pyarrow.csv.ReadOptions(autogenerate_column_names=headless))
    )


def read_parquet(path: Path) -> Array:
    """Take the numeric columns."""
    return numeric_columns(pyarrow.parquet.read_table(path))


def numeric_columns(table: pa.Table) -> Array:
    columns = [
        column.to_numpy().astype(np.float64)
        for column in table.columns
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
    ]
    return np.column_stack(columns)


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
