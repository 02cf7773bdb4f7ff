"""What to run: data sets, folds and where the results go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from .datasets import LARGE, N_FOLDS, Dataset, load_file, load_paper_set

ROOT = Path(__file__).parents[1]
FOLDER = ROOT.parent / "shared" / "datasets"
RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Plan:
    """The options that all benchmarks share."""

    folder: Path
    names: tuple[str, ...]
    files: tuple[Path, ...]
    folds: int
    large_folds: int
    out: Path

    def datasets(self) -> Iterator[Dataset]:
        """Load one data set after the other; report and skip missing ones."""
        for name in self.names:
            path = self.folder / f"{name}.npz"
            if path.is_file():
                yield load_paper_set(path)
            else:
                click.echo(f"{name}: skipped, there is no {path}", err=True)
        for path in self.files:
            yield load_file(path)

    def folds_of(self, dataset: Dataset) -> range:
        """Return the test folds."""
        folds = self.large_folds if len(dataset.x) >= LARGE else self.folds
        return range(1, min(folds, N_FOLDS) + 1)
