"""Every benchmark runs on a tiny data set and leaves its files."""

import csv
import json
from itertools import product

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import (
    baselines,
    blame,
    change,
    floor,
    large,
    metrics,
    opponents,
    prequential,
    rarities,
    settled,
    speed,
)
from benchmarks.__main__ import main


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


def quick(name, folder, *arguments):
    return figures_of(name, folder, "--quick", *arguments)


@pytest.mark.parametrize(
    ("name", "methods"), [("table1", 1), ("threshold", 6), ("leaf-size", 3), ("early-stop", 2)]
)
def test_a_benchmark_on_any_file_leaves_a_table_that_ends_with_its_figures(
    tmp_path, data, name, methods
):
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
    assert {"oSLRAU", "stacked", "online EM, mixture", "scikit-learn"} <= set(folds)
    assert folds["stacked"] == folds["online EM, mixture"] == 2
    assert folds["moment matching, random"] == folds["kernel density"] == 1
    assert all(np.isfinite(figure["honest"]["mean"]) for figure in figures["folds"])
    means = {stream["method"]: stream["mean"] for stream in figures["streams"]}
    assert set(means) < set(folds) and "kernel density" not in means
    assert means["stacked"] > means["precision matrix"]


@pytest.mark.slow
def test_the_density_benchmark_compares_learners_on_folds_and_streams(tmp_path, data, monkeypatch):
    monkeypatch.setattr(prequential, "MOST_RECORDS", 400)
    arguments = ("--datasets", tmp_path, "--data", data, "--folds", 1)
    figures = figures_of("density", tmp_path, *arguments)
    assert {fold["method"] for fold in figures["folds"]} == {
        "paper", "default", "stacked", "Gaussian"
    }  # fmt: skip
    assert all(np.isfinite([fold["native"], fold["own"]]).all() for fold in figures["folds"])
    means = {s["learner"]: s["mean"] for s in figures["streams"] if s["group"] == "tiny"}
    assert means["stacked"] > means["default"] and means["stacked"] > means["Gaussian"]
    assert "generated: rings" in {stream["group"] for stream in figures["streams"]}


@pytest.mark.slow
def test_the_parts_benchmark_leaves_each_part_out(tmp_path, data):
    figures = figures_of("parts", tmp_path, "--datasets", tmp_path, "--data", data)
    means = {figure["variant"]: figure["mean"] for figure in figures}
    assert {"as it is", "no challengers", "restart", "root: no products"} <= set(means)
    assert means["root: no products"] < means["root: "] + 0.1


@pytest.mark.slow
def test_the_settled_benchmark_follows_long_streams(tmp_path, monkeypatch):
    monkeypatch.setattr(settled, "QUICK_RECORDS", 3000)
    monkeypatch.setattr(settled, "STARTS", (1024,))
    monkeypatch.setattr(settled, "STREAMS", ("clusters",))
    (stretch,) = quick("settled", tmp_path)
    assert stretch["stop"] == 2048 and stretch["mean_us"] > 0
    assert stretch["lost"] == 0.0  # short streams learn every record


@pytest.mark.slow
def test_the_change_benchmark_follows_changes_and_suffers_faults(tmp_path, monkeypatch):
    monkeypatch.setattr(change, "STATIONARY", 2)
    monkeypatch.setattr(change, "STATIONARY_RECORDS", 1000)
    data = tmp_path / "small.npz"
    np.savez(data, x=np.random.default_rng(0).normal([5.0, 0.0, 1.0], size=(2200, 3)))
    figures = figures_of("change", tmp_path, "--datasets", tmp_path, "--data", data)
    stacked, of_root, alone, _ = figures["courses"]
    assert stacked["means"]["last 500"] > alone["means"]["last 500"]
    assert stacked["means"]["first 256"] >= of_root["means"]["first 256"]
    assert [fault["records"] for fault in figures["faults"]] == [600]
    assert [stream["challengers"] for stream in figures["stationary"]] == [0, 0]


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


@pytest.mark.slow
def test_the_speed_benchmark_measures_against_the_bare_loop(tmp_path, monkeypatch):
    monkeypatch.setattr(speed, "LEAVES", (50, 100))
    monkeypatch.setattr(speed, "VARIABLES", (2, 4))
    monkeypatch.setattr(speed, "BATCHES", (1, 64))
    monkeypatch.setattr(speed, "MIDDLE_LEAVES", 60)
    monkeypatch.setattr(speed, "DEFAULT_VARIABLES", (3,))
    monkeypatch.setattr(speed, "DEFAULT_RECORDS", 500)
    figures = figures_of("speed", tmp_path, "--datasets", tmp_path)
    assert len(figures) == 4 * 2 + 4 * 2 + 6 + 3 * 4 + 3
    scorings = [figure for figure in figures if figure["scorings"] is not None]
    assert {figure["operation"].removeprefix("default: ") for figure in scorings} == {
        "contributions", "score, a field missing",
    }  # fmt: skip
    assert all(figure["ns"] > 0 and figure["bare_ns"] > 0 for figure in figures)
    assert (tmp_path / "speed.png").is_file()


def test_the_cost_of_metrics_is_a_share_of_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(metrics, "_RECORDS", 4000)
    monkeypatch.setattr(metrics, "_WARM_UP", 2000)
    figures = figures_of("metrics", tmp_path)
    assert 0 < figures["share"] < 1
    assert figures["pipeline_us_per_batch"] > 0


def test_the_floor_is_the_sum_of_what_libraries_take(tmp_path, monkeypatch):
    monkeypatch.setattr(floor, "_REPEATS", 2)
    monkeypatch.setattr(floor, "_HELD", 2048)
    figures = figures_of("floor", tmp_path)
    assert all(us > 0 for us in figures["parts_us"].values())
    assert figures["floor_us"] == pytest.approx(sum(figures["parts_us"].values()), abs=0.01)
    assert figures["nodes"] > 10 and figures["snapshot_bytes"] > 1000 and figures["series"] > 50


@pytest.mark.slow
def test_quality_ranks_every_stream_by_every_detector(tmp_path):
    figures = quick("quality", tmp_path)
    methods = {figure["method"] for figure in figures["streams"]}
    assert {"Gaussian, full", "forest", "half-space trees", "scorer"} <= methods
    parts = {figure["part"] for figure in figures["streams"]}
    assert {"generated, development", "generated, held-out"} <= parts
    assert all(0 <= figure["area"] <= 1 for figure in figures["streams"])
    scorer = [f["area"] for f in figures["streams"] if f["method"] == "scorer"]
    assert len(scorer) * len(methods) == len(figures["streams"])
    assert np.mean(scorer) > 0.6
    assert {"spike", "stuck", "precision"} <= {row["kind"] for row in figures["demo"]}


@pytest.mark.slow
def test_ranking_holds_the_scorer_against_each_other_detector(tmp_path, monkeypatch):
    monkeypatch.setattr(rarities, "N_RECORDS", 1_500)  # the forests are fitted after 1,008
    folder = tmp_path / "labelled"
    folder.mkdir()
    rng = np.random.default_rng(5)
    for name in ("one", "two", "three", "four"):
        x, y = rng.normal(size=(300, 3)), rng.random(300) < 0.1
        x[y] += 3.0
        np.savez(folder / f"{name}.npz", x=x, y=y)
    figures = quick("ranking", tmp_path, "--datasets", tmp_path)["streams"]
    families = {figure["family"] for figure in figures}
    assert families == {
        f"{p}, {n}" for p in ("groups", "scattered", "sets") for n in ("even", "odd")
    }
    means = {
        m: np.mean([f["area"] for f in figures if f["method"] == m])
        for m in ("forest, frozen", "scorer, p-value")
    }
    assert means["scorer, p-value"] > max(0.8, means["forest, frozen"])
    assert "forest, refit" in (tmp_path / "ranking.md").read_text()


@pytest.mark.slow
def test_detection_ranks_by_the_detectors_of_other_libraries(tmp_path):
    pytest.importorskip("capymoa", reason="needs CapyMOA: pip install '.[opponents]'")
    figures = quick("detection", tmp_path, "--datasets", tmp_path)["streams"]
    methods = {figure["method"] for figure in figures}
    assert {"scorer, p-value", "LODA, River", "Online-iForest", "RS-Hash"} <= methods
    assert {figure["part"] for figure in figures} == {"groups", "scattered"}


@pytest.mark.slow
def test_large_learns_every_stand_in_in_a_process_of_its_own(tmp_path):
    figures = quick("large", tmp_path)
    assert {figure["dataset"] for figure in figures} == set(large.SHAPES)
    assert all(figure["memory"] > 1e7 for figure in figures)


@pytest.mark.slow
def test_calibration_compares_realised_with_nominal_rates(tmp_path, data):
    figures = quick("calibration", tmp_path, "--data", data)
    assert {"correlations", "atoms", "slow drift", "tiny"} <= set(figures)
    assert all(0.3 < ratio < 3 for rate, ratio in figures["correlations"] if rate >= 0.01)
    assert (tmp_path / "calibration.png").is_file()


@pytest.mark.slow
def test_drift_follows_changes_with_and_without_forgetting(tmp_path):
    figures = quick("drift", tmp_path)
    assert {figure["memory"] for figure in figures} == {"off", 30_000, 8_000, 2_000}
    assert {figure["seed"] for figure in figures} == {0, 1, 2}
    assert all(figure["taken in"] >= 0 for figure in figures if figure["change"] == "sudden")
    assert (tmp_path / "drift.png").is_file()


@pytest.mark.slow
def test_incidents_are_fewer_than_alarms_and_find_faults(tmp_path):
    figures = quick("incidents", tmp_path)
    methods = {figure["method"] for figure in figures["faults"]}
    assert methods == {"incidents", "alarms", "Gaussian", "forest"}
    own = [figure for figure in figures["faults"] if figure["method"] == "incidents"]
    assert sum(figure["found"] for figure in own) > 0
    assert all(figure["alerts"] <= 2 * figure["found"] for figure in own)


@pytest.mark.slow
def test_alarms_are_few_at_the_start_and_repeated_faults_stay_alarms(tmp_path):
    figures = quick("alarms", tmp_path)
    assert [row["streams"] for row in figures["start"][-2:]] == ["all", "demo"]
    known = [row for row in figures["start"] if row["streams"] not in ("regimes", "all")]
    assert all(float(row["ratio"]) <= 3 for row in known)  # a new regime is unusual at first
    repeated = [row for row in figures["spikes"] if row["spikes"] == "repeated"]
    assert {row["part"] for row in repeated} == {"development", "held out"}
    assert all(row["caught"] == row["faults"] == 28 >= row["Gaussian"] for row in repeated)
    assert {row["Gaussian"] for row in repeated if row["part"] == "development"} == {28}
    assert all(float(row["ratio"]) < 2 for row in figures["heavy tails"])


@pytest.mark.slow
def test_sequences_compares_a_history_with_peers_on_families_and_on_labelled_runs(tmp_path):
    rng = np.random.default_rng(1)
    labels = np.arange(600) >= 500
    np.savez(tmp_path / "run.npz", x=rng.normal(size=(600, 2)) + 9.0 * labels[:, None], y=labels)
    figures = quick("sequences", tmp_path, "--data", tmp_path / "run.npz")
    of_shifts = [f for f in figures if f.get("family") == "memoryless" and "lasting: area" in f]
    assert {f["score"] for f in of_shifts} >= {"single records", "history: record", "trees"}
    rates = [f for f in figures if f.get("family") == "memoryless" and "records 0.01" in f]
    found = [(f["learner"], f["history"]) for f in rates]
    assert found == [(kind, given) for kind in ("oslrau", "stacked") for given in ("no", "yes")]
    alarmed = [f for f in figures if "found" in f]
    assert {(f["learner"], f["history"], f["rate"]) for f in alarmed} == set(
        product(("oslrau", "stacked"), ("no", "yes"), ("0.01", "0.001"))
    )
    assert all(0 <= f["found"] <= f["faults"] == 2 for f in alarmed)
    assert any("nats gained" in f for f in figures)
    assert {f["score"] for f in figures if "F1" in f} >= {"VAR", "history: record, 32 records"}


@pytest.mark.slow
def test_formats_are_timed_and_give_the_same_scores(tmp_path):
    figures = quick("formats", tmp_path)
    assert len(figures) == 15
    assert all(figure["throughput"] > 0 for figure in figures)


@pytest.mark.slow
def test_every_codec_makes_messages_smaller(tmp_path):
    figures = quick("codecs", tmp_path)
    kinds = {(row["messages"], row["in a batch"]) for row in figures}
    assert len(kinds) == 4 and len(figures) == 5 * len(kinds)
    for kind in kinds:
        whole, *small = [row for row in figures if (row["messages"], row["in a batch"]) == kind]
        assert whole["codec"] == "none"
        assert all(row["bytes"] < whole["bytes"] for row in small)


@pytest.mark.slow
def test_sequence_cost_times_both_learners_with_and_without_a_history(tmp_path):
    figures = quick("sequence-cost", tmp_path)
    assert [row["learner"] for row in figures] == ["oslrau"] * 3 + ["stacked"] * 3
    plain = [row["multiple"] for row in figures if row["scorer"] == "single records"]
    assert plain == [1.0, 1.0]
    assert all(0.5 < row["multiple"] < 10 for row in figures)


@pytest.mark.slow
def test_forecasts_measures_how_many_values_are_within_the_band(tmp_path):
    figures = quick("forecasts", tmp_path)
    assert {row["given"] for row in figures["rows"]} == {"nothing", "history", "season", "entity"}
    assert all(0.9 < row["within"] <= 1.0 for row in figures["rows"])
    assert all(row["multiple"] > 0.5 for row in figures["costs"])


@pytest.mark.slow
def test_soon_counts_records_until_most_is_gained(tmp_path):
    figures = quick("soon", tmp_path)
    assert all(float(row["long-run gain, nats"]) > 0 for row in figures["rows"])
    assert (tmp_path / "soon.png").is_file()


@pytest.mark.slow
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_blame_measures_every_fault_on_every_stream_with_every_learner(tmp_path):
    figures = quick("blame", tmp_path)
    streams = blame.DEVELOPMENT | blame.HELD_OUT
    by_oracle = {each["stream"] for each in figures if each["learner"] == blame.ORACLE}
    assert by_oracle == {"heavy", "skewed", "bursts"}
    assert len(figures) == len(blame.LEARNERS) * len(streams) + len(by_oracle)
    assert all(figure["one, 8"]["first"] > 0.8 for figure in figures)
    assert all(figure["one, 8"]["exact"] > 0.8 for figure in figures)


@pytest.mark.slow
def test_rates_finds_large_changes_of_steady_arrivals_and_hardly_any_is_false(tmp_path):
    figures = quick("rates", tmp_path)
    of = {(figure["arrivals"], figure["way"]): figure for figure in figures}
    assert len(of) == 14
    for arrivals in ("constant", "daily", "drifting"):
        assert of[arrivals, "rates"]["x 5"].startswith("1 of 1")
        assert of[arrivals, "rates"]["false"] < 0.2
    assert of["daily", "rates"]["false"] < of["daily", "bands"]["false"]


def test_silence_finds_those_of_regular_entities_and_none_is_false(tmp_path):
    of = {figure["arrivals"]: figure for figure in quick("silence", tmp_path)}
    assert len(of) == 12
    assert (of["regular"]["false"], of["regular"]["found"]) == (0, 1.0)
    assert 3.0 < of["regular"]["delay"] < 5.0


def test_transforms_describe_log_normal_fields_better(tmp_path):
    figures = quick("transforms", tmp_path)
    assert [figure["transform"] for figure in figures] == ["log", "log1p", "asinh", "asinh"]
    assert figures[0]["gain"] > 0
