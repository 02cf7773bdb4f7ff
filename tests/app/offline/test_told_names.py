"""What commands on a file tell of the names of fields: those chosen, and those that none has."""

import os

import numpy as np
import orjson
import pytest
from command_line import run_well

ODD = "b\x1b"
"""A name that no terminal must get as it is."""

CHOSEN = "--settings settings.toml"
COMMANDS = {
    "replay": f"replay rows.ndjson --partitions 2 {CHOSEN} --out {os.devnull}",
    "compare": "compare settings.toml settings.toml rows.ndjson",
    "evaluate": f"evaluate rows.csv --labels fault --partitions 2 {CHOSEN}",
    "fit": f"fit rows.ndjson {CHOSEN} --out model",
}


@pytest.fixture(params=COMMANDS)
def told(request, tmp_path, monkeypatch):
    """A function that returns what a command tells of 600 rows with these settings."""
    rows = np.random.default_rng(1).normal(size=(600, 2)).tolist()
    (tmp_path / "rows.ndjson").write_bytes(
        b"\n".join(orjson.dumps({"a": a, ODD: b, "n": i}) for i, (a, b) in enumerate(rows))
    )
    lines = [f"{a},{b},{i},{i % 7 == 0:d}" for i, (a, b) in enumerate(rows)]
    (tmp_path / "rows.csv").write_text("\n".join([f"a,{ODD},n,fault", *lines]))
    monkeypatch.chdir(tmp_path)

    def tell(settings):
        (tmp_path / "settings.toml").write_text(settings)
        return run_well(*COMMANDS[request.param].split()).stderr.splitlines()

    return tell


def test_the_choice_of_fields_is_told_once(told):
    assert told("") == [
        r"features/0: the first records choose 2 fields: a, b\x1b; they leave out n (only grows)"
    ]


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ('features = ["a", "laod"]\nentity = "machin"\ntime = "tiem"', "'laod, machin, tiem'"),
        ('entity = "key"\nrates = "1m"\nrates_by = "sttus"\nleast = {aa = 2.0}',
         '"the message\'s key, sttus, aa"'),
    ],
)  # fmt: skip
def test_names_that_no_record_has_and_times_that_are_missing_are_told(settings, names, told):
    found = told(settings)
    assert any(line.endswith(f": no scored record has a value of {names}") for line in found)
    without_times = [line for line in found if "rows of a file have no times" in line]
    assert bool(without_times) == ("rates" in settings)


def test_of_names_that_are_right_nothing_is_told(told):
    assert told('features = ["a", "b\\u001b"]') == []
