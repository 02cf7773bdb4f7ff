"""From a clone or a wheel to the first scores, cold and warm: ``python -m benchmarks.start``."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from urllib.request import urlopen

import click

from .pipeline import environment
from .plan import RESULTS
from .report import WAITING, markdown, write_page

ROOT = Path(__file__).parents[1]
RECORDS = 300
WARM_RUNS = 3
REPLAY = ["replay", "rows.ndjson", "--out", "scores.ndjson"]
COMPILE = """
from faust_oslrau.app.pipeline import compile_pipeline
from faust_oslrau.app.settings import Settings
compile_pipeline(Settings())
"""
# Readers get ten pages of metrics a second.
LOOK_SECONDS = 0.1
SCORED = re.compile(r'^oslrau_records_total\{.*outcome="scored".*\} [1-9]', re.MULTILINE)
# As usual, and as `make` has it: where Python writes no bytecode, no start is warm.
USUAL = {"PYTHONDONTWRITEBYTECODE": ""}
Measure = Callable[[list[str], Path, Mapping[str, str]], float]

SETTINGS: dict[str, dict[str, str]] = {
    "defaults": {},
    "entities": {"OSLRAU_ENTITY": "key"},
    "history, seasons": {"OSLRAU_HISTORY": "10", "OSLRAU_SEASONS": "UTC"},
    "mixtures": {"OSLRAU_LEARNER_MIXTURES": "true"},
}

TEXT = """\
Seconds from a command to its end, or to what is named, in a new clone, and in an environment with
a wheel that brings its kernels along (`--wheel`, of `.ci/package`). *Cold* is the first time, with
nothing in the compiler's cache; *warm* is the fastest of three later ones. `replay` scores a file
of 300 records. The demo streams for one second: it starts a broker and a worker, and ends with its
summary. Its first score has come when the worker's metrics count one. `compile` does nothing but
compile, or load, what the defaults need.
Downloads of the installation come from the cache of `uv` or `pip`, if it has them."""


def seconds(command: list[str], folder: Path, variables: Mapping[str, str] = {}) -> float:
    """Run a command, and return how long it takes."""
    began = perf_counter()
    subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **USUAL, **variables},
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return perf_counter() - began


def write_rows(file: Path) -> None:
    """Write records of four fields that go together."""
    rng = random.Random(0)
    with file.open("w") as rows:
        for _ in range(RECORDS):
            a, b = rng.gauss(0, 1), rng.gauss(5, 2)
            row = {"a": a, "b": b, "c": a + b, "d": rng.gauss(0, 1)}
            rows.write(json.dumps(row) + "\n")


def seconds_to_first_score(demo: list[str], folder: Path, variables: Mapping[str, str]) -> float:
    """Start a demo, and return how long it takes until a record is scored; end it."""
    began = perf_counter()
    with subprocess.Popen(
        demo,
        cwd=folder,
        env={**os.environ, **USUAL, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            title = running.stderr.readline() if running.stderr else ""
            found = re.search(r"Demo at (http://127\.0\.0\.1:\d+)", title)
            if found is None:
                raise SystemExit(f"expected the address of a page, got {title!r}")
            while not is_scoring(found[1]):
                time.sleep(LOOK_SECONDS)
            return perf_counter() - began
        finally:
            running.terminate()


def is_scoring(page: str) -> bool:
    """Return whether a worker has scored a record; not before it answers."""
    try:
        with urlopen(f"{page}/metrics") as answer:
            return SCORED.search(answer.read().decode()) is not None
    except OSError:
        return False


def cold_and_warm(
    command: list[str], folder: Path, variables: Mapping[str, str], measure: Measure = seconds
) -> list[float]:
    """Return the seconds of the first run, and the least of later ones."""
    with tempfile.TemporaryDirectory() as cache:
        own = {**variables, "NUMBA_CACHE_DIR": cache}
        cold = measure(command, folder, own)
        return [cold, min(measure(command, folder, own) for _ in range(WARM_RUNS))]


def from_clone(folder: Path) -> dict[str, list[float]]:
    """Measure what a new clone takes."""
    clone = folder / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    found = {"install": [seconds(["make", ".venv/.ready"], clone)]}
    program = str(clone / ".venv/bin/faust-oslrau")
    for name, variables in SETTINGS.items():
        found[f"replay, {name}"] = cold_and_warm([program, *REPLAY], folder, variables)
    found["compile"] = cold_and_warm([str(clone / ".venv/bin/python"), "-c", COMPILE], folder, {})
    demo = [program, "demo", "--json", "--seconds"]
    found["demo of a second"] = cold_and_warm([*demo, "1"], folder, {})
    first = cold_and_warm([*demo, "60"], folder, {}, seconds_to_first_score)
    return found | {"demo, first score": first}


def from_wheel(folder: Path, wheel: Path) -> dict[str, list[float]]:
    """Measure what a wheel takes in a new environment."""
    subprocess.run([sys.executable, "-m", "venv", "wheel"], cwd=folder, check=True)
    programs = folder / "wheel" / "bin"
    install = [str(ROOT / ".ci/install"), str(programs / "python"), str(wheel.resolve())]
    found = {"install, wheel": [seconds(install, folder)]}
    for name, variables in SETTINGS.items():
        command = [str(programs / "faust-oslrau"), *REPLAY]
        found[f"replay, {name}, wheel"] = cold_and_warm(command, folder, variables)
    return found


@click.command()
@click.option("--wheel", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=RESULTS)
def main(wheel: Path | None, out: Path) -> None:
    """Measure a start from nothing; with a wheel, from that, too."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_rows(folder / "rows.ndjson")
        found = from_clone(folder)
        if wheel is not None:
            found |= from_wheel(folder, wheel)
    rows = [
        {"command": name, "cold, s": f"{cold:.1f}", "warm, s": f"{warm[0]:.1f}" if warm else ""}
        for name, (cold, *warm) in found.items()
    ]
    blocks = ["From a clone to the first scores", TEXT.replace("\n", " "), WAITING, markdown(rows)]
    write_page(out, "start", blocks, {"figures": found}, "benchmarks.start", environment())


if __name__ == "__main__":
    main()
