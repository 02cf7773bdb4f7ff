"""Every benchmark runs on a tiny data set and leaves its files."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import baselines, blame, large, opponents
from benchmarks.__main__ import main
from benchmarks.learners import LEARNERS


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "tiny.npz"
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3)) + 4.0 * rng.integers(2, size=(300, 1))
    np.savez(path, x=x)
    return path


def run(*arguments):
    result = CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def figures_of(name, folder, *arguments):
    """Run a benchmark, and return the figures with which its output and its table end."""
    shown = run(name, *arguments, "--out", folder).stdout.splitlines()[-1]
    written = (folder / f"{name}.md").read_text().splitlines()[-1]
    assert json.loads(shown) == json.loads(written)
    return json.loads(written)["figures"]


@pytest.mark.parametrize(
    ("name", "methods"), [("table1", 1), ("threshold", 6), ("leaf-size", 3), ("early-stop", 2)]
)
def test_a_benchmark_on_any_file_leaves_a_table_with_its_figures(tmp_path, data, name, methods):
    figures = figures_of(name, tmp_path, "--data", data, "--folds", 2)
    assert [figure["folds"] for figure in figures] == [2] * methods
    assert all(np.isfinite(figure["honest"]["mean"]) for figure in figures)
    with (tmp_path / f"{name}.csv").open() as file:
        assert file.readline().startswith("# python -m benchmarks")
        assert len(list(csv.DictReader(file))) == 2 * methods


@pytest.mark.slow
def test_the_baselines_are_compared_on_folds_and_on_streams(tmp_path, data, monkeypatch):
    quick = {module: opponents.NEEDS[module] for module in ("trees", "precision", "parzen")}
    monkeypatch.setattr(opponents, "NEEDS", quick)  # without those that take minutes
    monkeypatch.setattr(baselines, "SLOW_FOLDS", 1)
    opponents.densities.cache_clear()
    figures = figures_of("baselines", tmp_path, "--data", data, "--folds", 2)
    opponents.densities.cache_clear()
    folds = {figure["method"]: figure["folds"] for figure in figures["folds"]}
    assert {"oSLRAU", "oSLRAU, mixtures", "online EM, mixture", "scikit-learn"} <= set(folds)
    assert folds["oSLRAU, mixtures"] == folds["online EM, mixture"] == 2
    assert folds["moment matching, random"] == folds["kernel density"] == 1
    assert all(np.isfinite(figure["honest"]["mean"]) for figure in figures["folds"])
    means = {stream["method"]: stream["mean"] for stream in figures["streams"]}
    assert set(means) < set(folds) and "kernel density" not in means
    assert means["oSLRAU"] > means["precision matrix"]


def test_the_toy_benchmark_draws_its_networks(tmp_path):
    run("toy", "--out", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "toy.md", "toy-structure.png", "toy-components.png"
    }  # fmt: skip


def test_missing_data_sets_are_skipped_by_name(tmp_path, data):
    arguments = ("--datasets", tmp_path, "--dataset", "quake", "--data", data, "--folds", 1)
    result = run("table1", *arguments, "--out", tmp_path)
    assert "quake: skipped" in result.stderr
    assert len(json.loads(result.stdout.splitlines()[-1])["figures"]) == 1


QUICK = ("--quick",)
SLOW = pytest.mark.slow
COMMANDS = [
    ("metrics", (), {"metrics._RECORDS": 4000, "metrics._WARM_UP": 2000},
     {"share", "pipeline_us_per_batch"}),
    ("floor", (), {"floor._REPEATS": 2, "floor._HELD": 2048},
     {"parts_us", "floor_us", "nodes", "snapshot_bytes", "series"}),
    ("silence", QUICK, {}, {"regular", "false", "found", "delay"}),
    ("transforms", QUICK, {}, {"log", "log1p", "asinh", "gain"}),
]  # fmt: skip
SLOW_COMMANDS = [
    ("density", ("--datasets", "EMPTY", "--data", "TINY", "--folds", 1),
     {"prequential.MOST_RECORDS": 400},
     {"paper", "default", "mixtures", "Gaussian", "native", "own", "generated: rings"}),
    ("speed", ("--datasets", "EMPTY"),
     {"speed.LEAVES": (50, 100), "speed.VARIABLES": (2, 4), "speed.BATCHES": (1, 64),
      "speed.MIDDLE_LEAVES": 60, "speed.DEFAULT_VARIABLES": (3,), "speed.DEFAULT_RECORDS": 500},
     {"scorings", "ns", "bare_ns", "default: contributions", "default: score, a field missing"}),
    ("quality", QUICK, {},
     {"Gaussian, full", "forest", "half-space trees", "scorer", "generated, development",
      "generated, held-out", "spike", "stuck", "precision"}),
    ("ranking", (*QUICK, "--datasets", "LABELLED"), {"rarities.N_RECORDS": 1_500},
     {"forest, frozen", "scorer, p-value",
      *(f"{part}, {n}" for part in ("groups", "scattered", "sets") for n in ("even", "odd"))}),
    ("detection", (*QUICK, "--datasets", "EMPTY"), {},
     {"scorer, p-value", "LODA, River", "Online-iForest", "RS-Hash", "groups", "scattered"}),
    ("large", QUICK, {}, {"memory", *large.SHAPES}),
    ("calibration", (*QUICK, "--data", "TINY"), {},
     {"correlations", "atoms", "slow drift", "tiny"}),
    ("drift", QUICK, {}, {"off", "sudden", "taken in", "seed"}),
    ("incidents", QUICK, {}, {"incidents", "alarms", "Gaussian", "forest", "found"}),
    ("alarms", QUICK, {}, {"all", "demo", "repeated", "development", "held out", "heavy tails"}),
    ("sequences", (*QUICK, "--data", "RUN"), {},
     {"single records", "history: record", "trees", "VAR", "history: record, 32 records",
      "oslrau", "mixtures", "lasting: area", "records 0.01", "found", "nats gained", "F1"}),
    ("formats", QUICK, {}, {"throughput"}),
    ("codecs", QUICK, {}, {"none", "zstd", "bytes", "in a batch"}),
    ("sequence-cost", QUICK, {}, {"oslrau", "mixtures", "single records", "multiple"}),
    ("forecasts", QUICK, {}, {"nothing", "history", "season", "entity", "within", "multiple"}),
    ("soon", QUICK, {}, {"long-run gain, nats"}),
    ("blame", QUICK, {},
     {"one, 8", "first", "exact", *LEARNERS, *blame.DEVELOPMENT, *blame.HELD_OUT}),
    ("rates", QUICK, {}, {"constant", "daily", "drifting", "rates", "bands", "false"}),
]  # fmt: skip
"""Commands, their arguments, smaller constants, and what must be among keys and texts of figures.
"""


@pytest.fixture(scope="module")
def places(data, tmp_path_factory):
    """What stands in the arguments for data sets, and for folders of some."""
    folder = tmp_path_factory.mktemp("places")
    (folder / "labelled").mkdir()
    (folder / "empty").mkdir()
    rng = np.random.default_rng(5)
    for name in ("one", "two", "three", "four"):
        x, y = rng.normal(size=(300, 3)), rng.random(300) < 0.1
        x[y] += 3.0
        np.savez(folder / "labelled" / f"{name}.npz", x=x, y=y)
    labels = np.arange(2200) >= 2100
    x = rng.normal([5.0, 0.0, 1.0], size=(2200, 3)) + 9.0 * labels[:, None]
    np.savez(folder / "run.npz", x=x, y=labels)
    return {"TINY": data, "RUN": folder / "run.npz", "EMPTY": folder / "empty", "LABELLED": folder}


@pytest.mark.filterwarnings("error::RuntimeWarning:benchmarks.blame")
@pytest.mark.parametrize(
    ("name", "arguments", "constants", "expected"),
    [*COMMANDS, *(pytest.param(*command, marks=SLOW) for command in SLOW_COMMANDS)],
    ids=[command[0] for command in (*COMMANDS, *SLOW_COMMANDS)],
)
def test_a_benchmark_ends_with_finite_figures_of_all_that_it_compares(
    name, arguments, constants, expected, places, tmp_path, monkeypatch
):
    if name == "detection":
        pytest.importorskip("capymoa", reason="needs CapyMOA: pip install '.[opponents]'")
    for constant, value in constants.items():
        monkeypatch.setattr(f"benchmarks.{constant}", value)
    figures = figures_of(name, tmp_path, *(places.get(each, each) for each in arguments))
    found = [*everything_in(figures)]
    assert expected <= {each for each in found if isinstance(each, str)}
    numbers = [each for each in found if isinstance(each, int | float)]
    if name == "sequences":  # where nothing is found, there is no share of it
        numbers = [number for number in numbers if not np.isnan(number)]
    assert numbers and np.isfinite(numbers).all()
    has_plot = name in ("quality", "speed", "calibration", "drift", "soon")
    assert (tmp_path / f"{name}.png").is_file() == has_plot


def everything_in(figures):
    """Yield all keys, texts and numbers of figures."""
    if isinstance(figures, dict):
        yield from figures
    if isinstance(figures, dict | list):
        for each in figures.values() if isinstance(figures, dict) else figures:
            yield from everything_in(each)
    else:
        yield figures
