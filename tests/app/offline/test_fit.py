"""`fit` and `merge` on the command line, and deployments that begin with their models."""

import json
import os

import numpy as np
import orjson
import pytest
from as_records import as_records
from command_line import run

from faust_oslrau.app.errors import SettingsError
from faust_oslrau.app.pipeline import PartitionPipeline, Snapshot, model_file, new_pipeline
from faust_oslrau.app.settings import Settings

ROWS = 1500


def lines(seed, n=ROWS):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 2)) @ np.array([[1, 0.9], [0, 0.5]])
    return [orjson.dumps({"a": a, "b": b}) for a, b in rows.tolist()]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two files of records, and the models of both, of the first and of the second."""
    folder = tmp_path_factory.mktemp("fit")
    for seed in (1, 2):
        (folder / f"{seed}.ndjson").write_bytes(b"\n".join(lines(seed)))
    both = [folder / "1.ndjson", folder / "2.ndjson"]
    for name, chosen in (("both", both), ("first", both[:1]), ("second", both[1:])):
        assert run("fit", *chosen, "--out", folder / name).exit_code == 0
    return folder


def test_a_model_is_what_a_partition_learns_of_the_files(files):
    pipeline = PartitionPipeline("features", 0, Settings())
    pipeline.process(as_records([*lines(1), *lines(2)], time=None))
    model = Snapshot.from_bytes((files / "both").read_bytes())
    assert model.to_bytes() == pipeline.snapshot(0, 2 * ROWS).to_bytes()


def test_the_summary_counts_records(files, tmp_path):
    file = tmp_path / "rows.ndjson"
    file.write_bytes(b"\n".join([b"no json", *lines(1, 100)]))
    result = run("fit", file, "--out", tmp_path / "model", "--json")
    summary = json.loads(result.stdout)
    assert (summary["records"], summary["learned"]) == (101, 100)
    assert "features/0: the first records choose 2 fields: a, b" in result.stderr
    assert summary["rejected"] == {"not_json": 1} and summary["fields"] == ["a", "b"]
    assert (
        "1,500 valid, 0 rejected"
        in run("fit", files / "1.ndjson", "--out", tmp_path / "model").output
    )


def test_a_model_takes_the_place_of_a_file_and_of_nothing_else(tmp_path):
    file, link, target = (tmp_path / name for name in ("rows.ndjson", "link", "model"))
    file.write_bytes(b"\n".join(lines(1, 100)))
    link.symlink_to(target)
    assert run("fit", file, "--out", link).exit_code == 0
    assert link.is_symlink() and target.is_file()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    refused = run("fit", file, "--out", pipe)
    assert refused.exit_code == 1 and f"{pipe}: expected a regular file" in refused.stderr
    assert pipe.is_fifo()


def test_what_is_read_is_not_written(files):
    for command, read in (("fit", "1.ndjson"), ("merge", "first")):
        before = (files / read).read_bytes()
        refused = run(command, files / read, "--out", files / read)
        assert refused.exit_code == 2
        assert refused.stderr.endswith(
            f"expected another file than {files / read}, which is read\n"
        )
        assert (files / read).read_bytes() == before


def test_a_partition_begins_with_the_model_and_goes_on_as_if_it_had_learned_the_files(files):
    settings = Settings(initial_model=str(files / "first"))
    block = new_pipeline("features", 3, settings).process(as_records(lines(2), 3, key=b"k"))
    whole = PartitionPipeline("features", 0, Settings())
    whole.process(as_records(lines(1)))
    expected = whole.process(as_records(lines(2), first=ROWS))
    assert block.log_likelihood.tobytes() == expected.log_likelihood.tobytes()
    assert block.p_value.tobytes() == expected.p_value.tobytes()
    first = orjson.loads(block.scores[0].value)
    assert (first["partition"], first["offset"], first["warming_up"]) == (3, 0, False)


def test_replay_begins_with_the_model(files, tmp_path):
    (tmp_path / "settings.toml").write_text(f'initial_model = "{files / "first"}"')
    arguments = ("--settings", tmp_path / "settings.toml", "--out", tmp_path / "out.ndjson")
    assert run("replay", files / "2.ndjson", *arguments).exit_code == 0
    scores = [orjson.loads(line) for line in (tmp_path / "out.ndjson").read_bytes().splitlines()]
    assert scores[0]["log_likelihood"] is not None


def test_a_file_that_is_no_model_or_one_of_other_settings_is_refused(files, tmp_path):
    for path, message in (
        (tmp_path / "none", "No such file"),
        (files / "1.ndjson", "expected a model's file"),
    ):
        with pytest.raises(SettingsError, match=f"setting initial_model: .*{message}"):
            new_pipeline("features", 0, Settings(initial_model=str(path)))
    with pytest.raises(SettingsError, match="was made with batch_size = 256, now 512"):
        new_pipeline("features", 0, Settings(initial_model=str(files / "first"), batch_size=512))


def test_a_file_that_changes_under_a_running_worker_is_refused(files, tmp_path):
    path = tmp_path / "model"
    path.write_bytes((files / "first").read_bytes())
    model_file.digest(str(path))
    path.write_bytes((files / "second").read_bytes())
    with pytest.raises(SettingsError, match="has changed, restart the worker"):
        new_pipeline("features", 0, Settings(initial_model=str(path)))


def test_too_few_records_make_no_model(tmp_path):
    (tmp_path / "rows.ndjson").write_bytes(b"\n".join(lines(1, 10)))
    result = run("fit", tmp_path / "rows.ndjson", "--out", tmp_path / "model")
    assert result.exit_code == 1 and "at least 16 valid records" in result.output
    assert not (tmp_path / "model").exists()


def test_records_that_are_all_rejected_make_no_model_and_say_why(tmp_path):
    (tmp_path / "rows.ndjson").write_bytes(b'{"a": "x"}\n' * 30)
    chosen = ("--features", "a", "--out", tmp_path / "model")
    result = run("fit", tmp_path / "rows.ndjson", *chosen)
    assert result.exit_code == 1 and result.stderr == (
        "Error: expected at least 16 valid records to learn a model from, got 0; the first "
        "rejected: features/0 offset 0: expected a number in field 'a', got a string\n"
    )


def test_models_are_merged_into_one_that_partitions_begin_with(files, tmp_path):
    out = tmp_path / "merged"
    result = run("merge", files / "first", files / "second", "--out", out, "--json")
    summary = json.loads(result.output)
    assert (summary["models"], summary["records"]) == (2, 2 * ROWS)
    merged = new_pipeline("features", 0, Settings(initial_model=str(out)))
    block = merged.process(as_records(lines(3)))
    alone = new_pipeline("features", 0, Settings(initial_model=str(files / "first")))
    other = alone.process(as_records(lines(3)))
    assert block.log_likelihood.mean() > other.log_likelihood.mean() - 0.05


def test_models_of_other_fields_are_not_merged(files, tmp_path):
    assert run("fit", files / "1.ndjson", "--out", tmp_path / "a", "--features", "a").exit_code == 0
    result = run("merge", files / "first", tmp_path / "a", "--out", tmp_path / "merged")
    assert result.exit_code == 1 and "expected models of the fields" in result.output
    damaged = run("merge", files / "1.ndjson", "--out", tmp_path / "merged")
    assert damaged.exit_code == 1 and "1.ndjson" in damaged.output
