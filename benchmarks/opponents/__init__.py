"""Densities and detectors that the learner is compared with.

Those that no maintained library has are written here, one in a module; the others are thin layers
over a library. Each module has ``METHODS``, by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec

import click
import numpy as np

from benchmarks.crossval import Density, Fit
from benchmarks.datasets import LARGE, Array, Dataset, Setting

from .sizes import Size

NEEDS = {
    "trees": "numba",
    "precision": "river",
    "parzen": "sklearn",
    "moment_network": "torch",
    "boltzmann": "torch",
    "real_nvp": "zuko",
    "vine": "pyvinecopulib",
    "einsum_network": "spflow",
}
"""The package that each module needs."""

HOURS = ("online EM, random", "moment matching, random", "Einsum network")
"""Those that would take an hour for one fold of a `LARGE` set; they learn `FEW` rows of it."""

FEW = 20_000

QUICK = ("online EM, mixture", "precision matrix")
"""Those that are run on every test fold of a plan; the others take minutes for each."""

Methods = dict[str, Callable[[Size], Fit]]


@cache
def densities() -> Methods:
    """Return the methods of every module whose package is installed; name the others."""
    return {name: make for module in installed(NEEDS) for name, make in methods(module).items()}


def installed(needs: dict[str, str]) -> Iterator[str]:
    for module, package in needs.items():
        if find_spec(package) is None:
            click.echo(f"{module}: skipped, needs {package}: pip install '.[opponents]'", err=True)
        else:
            yield module


def methods(module: str) -> Methods:
    found: Methods = import_module(f".{module}", __name__).METHODS
    return found


def fits(dataset: Dataset, size: Size) -> dict[str, Fit]:
    """Configure the opponents; those that take hours for so large a set learn some of it."""
    is_large = len(dataset.x) >= LARGE
    return {
        name: of_few_rows(make(size)) if is_large and name in HOURS else make(size)
        for name, make in densities().items()
    }


def of_few_rows(fit: Fit) -> Fit:
    """Let a method learn random rows of all folds."""

    def fit_few(folds: Iterable[Array], setting: Setting) -> Density:
        rows = np.random.default_rng(0).permutation(np.concatenate(list(folds)))
        batch_size = min(setting.batch_size, FEW // 20)  # memory grows with nodes times rows
        return fit([rows[:FEW]], setting._replace(batch_size=batch_size))

    return fit_few
