"""`faust-oslrau evaluate`: alarms and labels of a file."""

import json
from functools import partial

import command_line
import numpy as np
import orjson
import pyarrow
import pyarrow.parquet
import pytest
from as_records import as_records
from command_line import run, run_well
from sklearn.metrics import average_precision_score, roc_auc_score

from faust_oslrau.app.offline.evaluation import evaluate_log
from faust_oslrau.app.offline.labelled_file import LabelledFile
from faust_oslrau.app.offline.scored_log import ScoredLog
from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import Record

ROWS = 3000
WARM_UP = 240
FAULTS = {100: 2, 236: 8, 1000: 5, 2000: 1, 2500: 40}
"""Rows where faults start, and how long they are; the second reaches beyond the warm-up."""


def write_csv(path, columns):
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(map(str, row)) for row in (columns, *rows)]
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(7)
    a, b = rng.normal(size=(2, ROWS))
    b += 3 * a
    label = np.zeros(ROWS, int)
    for start, length in FAULTS.items():
        label[start : start + length] = 1
        b[start + length // 2 : start + length] -= 15  # begins halfway
    return {"a": a.tolist(), "b": b.tolist(), "fault": label.tolist()}


@pytest.fixture(scope="module")
def file(columns, tmp_path_factory):
    path = tmp_path_factory.mktemp("evaluate") / "log.csv"
    write_csv(path, columns)
    return path


def evaluated(*arguments):
    return json.loads(run_well("evaluate", *arguments, "--labels", "fault", "--json").stdout)


def block_of(columns):
    """Score the columns without the labels with a pipeline."""
    rows = zip(columns["a"], columns["b"], strict=True)
    records = as_records({"a": a, "b": b} for a, b in rows)
    return PartitionPipeline("features", 0, Settings()).process(records)


def test_a_field_that_no_record_has_is_named(file):
    result = run("evaluate", file, "--labels", "fault", "--features", "a,bb,b", "--json")
    assert result.stderr.splitlines()[-1] == "settings: no scored record has a value of 'bb'"
    (found,) = json.loads(result.stdout)
    assert found["empty_fields"] == ["bb"]
    assert "no scored record" not in run("evaluate", file, "--labels", "fault").stderr
    result = run("evaluate", file, "--labels", "fault", "--features", "aa,bb")
    assert result.exit_code != 0
    assert "settings: no scored record has a value of 'aa, bb'" in result.stderr


def test_figures_are_those_of_the_log_without_its_labels(file, columns):
    (found,) = evaluated(file)
    label, p_value = np.array(columns["fault"])[WARM_UP:], block_of(columns).p_value[WARM_UP:]
    alarm = p_value <= Settings().alarm_rate
    assert found["area_under_roc"] == pytest.approx(roc_auc_score(label, -p_value))
    assert found["average_precision"] == pytest.approx(average_precision_score(label, -p_value))
    assert (found["labelled"], found["others"]) == (label.sum(), len(label) - label.sum())
    assert found["alarms"] == alarm.sum()
    assert found["true_alarms"] == (alarm & (label == 1)).sum() > 0
    assert found["false_alarms"] == (alarm & (label == 0)).sum()
    assert found["precision"] == found["true_alarms"] / found["alarms"]
    assert found["recall"] == found["true_alarms"] / found["labelled"]


def test_faults_have_the_delay_of_their_first_alarm(file, columns, tmp_path):
    (tmp_path / "loose.toml").write_text("alarm_rate = 0.01\n")
    (found,) = evaluated(file, "--settings", tmp_path / "loose.toml")
    faults = {fault["offset"]: fault for fault in found["faults"]}
    assert {start: fault["records"] for start, fault in faults.items()} == {
        start: length for start, length in FAULTS.items() if start + length > WARM_UP
    }
    # Each begins halfway; what is before the end of the warm-up does not count.
    assert [fault["delay"] for fault in faults.values()] == [4, 2, 0, 20]
    assert (found["faults_found"], found["median_delay"]) == (4, 3.0)
    p_value = block_of(columns).p_value
    for start, fault in faults.items():
        own = p_value[max(start, WARM_UP) : start + fault["records"]]
        assert fault["p_value"] == own.min()


def test_delays_count_records_of_the_partition_rejected_ones_included(tmp_path):
    values = [{"a": 0.01 * (i * 37 % 100), "fault": i in range(303, 313)} for i in range(400)]
    values[304]["a"] = "broken"
    values[307]["a"] = 1e6
    path = tmp_path / "log.ndjson"
    path.write_bytes(b"\n".join(map(orjson.dumps, values)))
    source, log = LabelledFile(path, "fault"), ScoredLog("settings", Settings(alarm_rate=0.01))
    records = [Record("features", 0, i, None, key, value) for i, (key, value) in enumerate(source)]
    log.process(records)
    (fault,) = evaluate_log(log, source.labels).faults
    assert (fault.offset, fault.records, fault.delay) == (303, 10, 4)


def test_a_fault_that_is_not_found_has_no_delay(file, tmp_path):
    strict = tmp_path / "strict.toml"
    strict.write_text("alarm_rate = 1e-12\n")
    (found,) = evaluated(file, "--settings", strict)
    assert {fault["delay"] for fault in found["faults"]} == {None}
    assert found["alarms"] == found["recall"] == found["faults_found"] == 0
    assert found["precision"] is found["median_delay"] is None


def test_several_settings_are_evaluated_side_by_side_with_a_plot(file, tmp_path):
    for name, rate in (("low", 0.001), ("high", 0.02)):
        (tmp_path / f"{name}.toml").write_text(f"alarm_rate = {rate}\n")
    settings = [
        word for name in ("low", "high") for word in ("--settings", tmp_path / f"{name}.toml")
    ]
    low, high = evaluated(file, *settings)
    assert [low["alarm_rate"], high["alarm_rate"]] == [0.001, 0.02]
    assert low["recall"] < high["recall"] and low["false_alarms"] < high["false_alarms"]
    plot = tmp_path / "plot.png"
    result = run_well("evaluate", file, "--labels", "fault", *settings, "--plot", plot)
    assert plot.read_bytes().startswith(b"\x89PNG")
    head = result.stdout.splitlines()[0].split()
    assert head == [str(tmp_path / "low.toml"), str(tmp_path / "high.toml")]
    assert "0/2500" in result.stdout


def test_of_many_faults_the_longest_are_listed_in_their_order(columns, tmp_path):
    path = tmp_path / "log.csv"
    label = [int(i % 50 < 1 + (i > 2000)) for i in range(ROWS)]
    write_csv(path, {**columns, "fault": label})
    lines = run("evaluate", path, "--labels", "fault").stdout.splitlines()
    listed = [line.split()[:2] for line in lines if line.startswith("0/")]
    assert listed == [[f"0/{offset}", "2"] for offset in range(2000, ROWS, 50)]
    assert lines[-1] == "35 more faults, none of them longer: see --json"


def test_keys_and_partitions_distribute_rows_and_labels(columns, tmp_path):
    path = tmp_path / "log.csv"
    write_csv(path, {**columns, "machine": [f"m{i * i % 7}" for i in range(ROWS)]})
    (found,) = evaluated(path, "--key", "machine", "--partitions", 2)
    assert found["labelled"] + found["others"] == ROWS - 2 * WARM_UP
    assert {fault["partition"] for fault in found["faults"]} == {0, 1}
    assert found["area_under_roc"] > 0.75


def test_every_kind_of_file_and_of_label_gives_the_same(columns, file, tmp_path):
    table = {**columns, "fault": [label == 1 for label in columns["fault"]]}
    pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / "log.parquet")
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    (tmp_path / "log.ndjson").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    matrix, fault = np.column_stack([columns["a"], columns["b"]]), np.array(columns["fault"])
    np.savez(tmp_path / "log.npz", x=matrix, fault=fault)
    for name, labels in (("words.csv", ("false", "TRUE")), ("numbers.csv", ("0.0", "1.0"))):
        spelt = [labels[label] for label in columns["fault"]]
        write_csv(tmp_path / name, {**columns, "fault": spelt})
    expected = without_time(evaluated(file))
    for name in ("log.parquet", "log.ndjson", "log.npz", "words.csv", "numbers.csv"):
        assert without_time(evaluated(tmp_path / name)) == expected, name


def without_time(found):
    return [{name: each[name] for name in each if name != "microseconds"} for each in found]


failure = partial(command_line.failure, "evaluate")


def test_wrong_files_labels_and_settings_are_told_in_one_line(columns, file, tmp_path):
    code, told = failure(file, "--labels", "broken")
    assert code == 1 and "no column 'broken', expected one of a, b, fault" in told
    assert failure(tmp_path / "none.csv", "--labels", "fault")[0] == 1
    assert failure(file)[0] == 2
    code, told = failure(file, "--labels", "fault", "--features", "a,fault")
    assert code == 2 and "expected no field fault" in told
    other = tmp_path / "log.csv"
    for wrong in ("", "2", "yes", "-1"):
        write_csv(other, {**columns, "fault": [0] * 500 + [wrong] + [0] * (ROWS - 501)})
        code, told = failure(other, "--labels", "fault")
        assert code == 1 and "row 500: expected 0, 1, true or false in column 'fault'" in told
    for same in (0, 1):
        write_csv(other, {**columns, "fault": [same] * ROWS})
        code, told = failure(other, "--labels", "fault")
        assert code == 1 and "expected labelled records and others" in told
    np.savez(tmp_path / "log.npz", x=np.ones((5, 2)), fault=np.ones(4))
    code, told = failure(tmp_path / "log.npz", "--labels", "fault")
    assert code == 1 and "expected 5 numbers in the array fault" in told
    (tmp_path / "frozen.toml").write_text("learning = false\n")
    frozen = ("--settings", tmp_path / "frozen.toml")
    code, told = failure(file, "--labels", "fault", *frozen)
    assert code == 2 and "expected learning = true" in told
    (tmp_path / "rejected.ndjson").write_text('{"a": "x", "fault": 0}\n' * 9)
    code, told = failure(tmp_path / "rejected.ndjson", "--labels", "fault", "--features", "a")
    assert code == 1 and "; the first rejected: features/0 offset 0: " in told
    (tmp_path / "empty.ndjson").touch()
    assert failure(tmp_path / "empty.ndjson", "--labels", "fault")[0] == 1
    plot = tmp_path / "plot.pdf"
    assert failure(file, "--labels", "fault", "--plot", plot)[0] == 1
