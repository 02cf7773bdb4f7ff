"""`faust-oslrau compare`: two settings on one log."""

import json
import re
import sys
from functools import partial
from xml.etree import ElementTree

import command_line
import numpy as np
import orjson
import pytest
from as_records import as_records
from command_line import run, run_well

from faust_oslrau.app.offline.comparison import Comparison
from faust_oslrau.app.offline.input_files import open_input
from faust_oslrau.app.offline.scored_log import Scores
from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.settings import load_settings

ROWS = 3000
FAULT = 2500
NEGATIVE = 1200
WARM_UP = 240


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A log of latencies, one of them far too short, and settings that take logarithms or not."""
    folder = tmp_path_factory.mktemp("compare")
    rows = np.random.default_rng(3).normal(size=(ROWS, 2))
    rows[:, 0] = np.exp(rows[:, 0])
    rows[FAULT] = [1e-5, 0.0]
    rows[NEGATIVE, 0] = -0.1
    lines = [orjson.dumps({"latency": a, "load": b}) + b"\n" for a, b in rows.tolist()]
    for name, chosen in (
        ("log", lines),
        ("first", lines[:1000]),
        ("second", lines[1000:]),
        ("short", lines[:WARM_UP]),
    ):
        (folder / f"{name}.ndjson").write_bytes(b"".join(chosen))
    (folder / "plain.toml").write_text("alarm_rate = 0.0005\n")
    (folder / "logs.toml").write_text('alarm_rate = 0.0005\ntransforms = {latency = "log"}\n')
    (folder / "one.toml").write_text('features = ["load"]\n')
    return folder


@pytest.fixture
def servers(broker):
    """The client of these tests talks to the embedded broker."""
    return broker.bootstrap_servers


def compared(folder, a, b, *arguments):
    return json.loads(run_well("compare", folder / a, folder / b, *arguments, "--json").stdout)


def expected_blocks(folder, partitions=1):
    """What pipelines with each settings give for the log, as one block for each partition."""
    messages = [message.value for message in open_input(folder / "log.ndjson")]
    settings = (load_settings(folder / name, {}) for name in ("plain.toml", "logs.toml"))
    return [
        [
            PartitionPipeline("features", p, own).process(as_records(messages[p::partitions], p))
            for p in range(partitions)
        ]
        for own in settings
    ]


def test_the_better_settings_find_an_injected_fault(folder):
    found = compared(folder, "plain.toml", "logs.toml", folder / "log.ndjson")
    assert found["differing_settings"] == {"transforms": [{}, {"latency": "log"}]}
    only_b = {alarm["offset"]: alarm for alarm in found["alarms"]["only_b"]}
    assert only_b[FAULT]["blamed"] == [[], ["latency"]]
    p_a, p_b = only_b[FAULT]["p_value"]
    assert p_b <= 0.0005 < p_a
    means, best = found["log_likelihood"], found["log_likelihood_best"]
    assert means[1] > means[0] and best[1] > best[0]
    assert found["a"]["rejected"] == {} and found["b"]["rejected"] == {"out_of_range": 1}
    assert found["compared"] == ROWS - WARM_UP - 1


@pytest.mark.parametrize("partitions", [1, 3])
def test_figures_are_those_of_the_records_that_both_score(folder, partitions):
    found = compared(
        folder, "plain.toml", "logs.toml", folder / "log.ndjson", "--partitions", partitions
    )
    scores, alarms = [], []
    for blocks in expected_blocks(folder, partitions):
        scores.append(
            {
                (p, message.offset): (block.log_likelihood[i], block.p_value[i])
                for p, block in enumerate(blocks)
                for i, message in enumerate(block.scores)
                if i >= WARM_UP
            }
        )
        anomalies = {(p, m.offset) for p, block in enumerate(blocks) for m in block.anomalies}
        alarms.append(anomalies & scores[-1].keys())
    places = scores[0].keys() & scores[1].keys()
    assert found["compared"] == len(places) == sum(s["records"] for s in found["stretches"])
    means = [np.mean([own[place][0] for place in places]) for own in scores]
    assert found["log_likelihood"] == pytest.approx(means)
    weighted = [s["records"] * np.array(s["log_likelihood"]) for s in found["stretches"]]
    assert sum(weighted) / len(places) == pytest.approx(means)
    a, b = (own & places for own in alarms)
    for group, expected in (("both", a & b), ("only_a", a - b), ("only_b", b - a)):
        assert {(x["partition"], x["offset"]) for x in found["alarms"][group]} == expected
        assert sum(s["alarms"][group] for s in found["stretches"]) == len(expected)


def test_the_standard_error_is_that_of_stretches():
    """Records that differ in blocks of 50 count as 20 stretches, not as 1,000 records."""
    difference = np.repeat(np.random.default_rng(0).normal(size=20), 50)
    comparison = Comparison(
        logs=(None, None),
        partition=np.zeros(1000, np.int64),
        scores=tuple(scores_with(level) for level in (np.zeros(1000), difference)),
    )
    expected = difference[::50].std(ddof=1) / np.sqrt(20)
    assert comparison.standard_error == pytest.approx(expected)


def scores_with(log_likelihood):
    n = len(log_likelihood)
    return Scores(np.arange(n), log_likelihood, np.ones(n), np.zeros(n, bool))


def test_several_files_are_one_log(folder):
    whole = compared(folder, "plain.toml", "logs.toml", folder / "log.ndjson")
    parts = compared(
        folder, "plain.toml", "logs.toml", folder / "first.ndjson", folder / "second.ndjson"
    )
    for own in (*(whole[name] for name in "ab"), *(parts[name] for name in "ab")):
        assert own.pop("microseconds") > 0
    assert parts == whole


def test_a_topic_is_compared_like_a_file(folder, broker, client, topic_name):
    broker.create_topic(topic_name, 1)
    client.send(topic_name, [(0, message.value) for message in open_input(folder / "log.ndjson")])
    options = ("--topic", topic_name, "--broker", broker.bootstrap_servers)
    topic = compared(folder, "plain.toml", "logs.toml", *options)
    file = compared(folder, "plain.toml", "logs.toml", folder / "log.ndjson")
    for name in ("alarms", "log_likelihood", "stretches"):
        assert topic[name] == file[name]
    some = compared(folder, "plain.toml", "logs.toml", *options, "--from", 100, "--to", 600)
    assert some["compared"] == 500 - WARM_UP
    missing = run(
        "compare", folder / "plain.toml", folder / "logs.toml", "--topic", "none", *options[2:]
    )
    assert missing.exit_code == 4


def test_tables_and_a_plot_show_settings_figures_stretches_and_alarms(folder, tmp_path):
    files, plot = ("plain.toml", "logs.toml", "log.ndjson"), tmp_path / "plot.svg"
    result = run_well("compare", *(folder / name for name in files), "--plot", plot)
    assert ElementTree.parse(plot).getroot().tag.endswith("svg")
    lines = result.stdout.splitlines()
    assert lines[1].startswith("3,000 records, 2,759 compared")
    assert "transforms" in result.stdout and "{'latency': 'log'}" in result.stdout
    assert any(line.startswith("90 to 100 %") for line in lines)
    place = next(line for line in lines if line.startswith(f"0/{FAULT}"))
    assert place.endswith("latency")
    assert max(map(len, lines[1:])) <= 100  # the first has the paths


def test_alarms_of_settings_with_different_fields_are_compared(folder, tmp_path):
    both = folder / "plain.toml", folder / "one.toml"
    plot = ("--plot", tmp_path / "plot.svg")
    result = run_well("compare", *both, folder / "log.ndjson", *plot)
    assert "plain.toml has 'latency'; log-likelihoods do not compare" in result.stderr
    assert re.search(r"log-likelihood, mean +- +- +-\n", result.stdout)
    assert re.search(r"\nalarms +[0-9]+ +[0-9]+ +", result.stdout)
    found = compared(folder, *both, folder / "log.ndjson")
    assert found["log_likelihood"] == [None, None] and found["standard_error"] is None
    assert found["compared"] == ROWS - WARM_UP


failure = partial(command_line.failure, "compare")


def test_what_cannot_be_compared_is_told_in_one_line(folder, tmp_path, monkeypatch):
    plain, log = folder / "plain.toml", folder / "log.ndjson"
    code, told = failure(plain, plain, folder / "short.ndjson")
    assert code == 1 and "after the first 240" in told
    (tmp_path / "empty.ndjson").touch()
    assert failure(plain, plain, tmp_path / "empty.ndjson")[0] == 1
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("batch_size = 3\n")
    code, told = failure(plain, wrong, log)
    assert code == 2 and "wrong.toml: setting batch_size" in told
    code, told = failure(plain, tmp_path / "none.toml", log)
    assert code == 2 and told.count("none.toml") == 1
    assert failure(plain, plain, tmp_path / "none.csv")[0] == 1
    assert failure(plain, plain, log, "--from", 3)[0] == 2
    assert failure(plain)[0] == 2


def test_a_plot_that_cannot_be_drawn_is_refused_before_the_work(folder, tmp_path, monkeypatch):
    plain, log = folder / "plain.toml", folder / "log.ndjson"
    code, told = failure(plain, plain, log, "--plot", tmp_path / "plot.pdf")
    assert code == 1 and "expected a name that ends in .png or .svg" in told
    code, told = failure(plain, plain, log, "--plot", tmp_path / "none" / "plot.png")
    assert code == 1 and "expected a folder" in told
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, told = failure(plain, plain, log, "--plot", tmp_path / "plot.png")
    assert code == 1 and "pip install 'faust-oslrau[plot]'" in told
