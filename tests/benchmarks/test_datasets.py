"""Data sets of the benchmarks."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from benchmarks.datasets import Dataset, Setting, load_file, paper_setting

NUMBERS = np.random.default_rng(0).normal(3.0, 7.0, size=(50, 3))


def write_csv(path, header=""):
    np.savetxt(path, NUMBERS, delimiter=",", header=header, comments="")


def write_parquet(path):
    table = pa.table({name: NUMBERS[:, k] for k, name in enumerate("abc")})
    pyarrow.parquet.write_table(table.append_column("name", pa.array(["text"] * 50)), path)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("plain.csv", write_csv),
        ("header.csv", lambda path: write_csv(path, "a,b,c")),
        ("arrays.npz", lambda path: np.savez(path, x=NUMBERS)),
        ("columns.parquet", write_parquet),
    ],
)
def test_numeric_columns_of_any_file_are_standardised_and_split_in_ten(tmp_path, name, write):
    write(tmp_path / name)
    dataset = load_file(tmp_path / name)
    expected = (NUMBERS - NUMBERS.mean(axis=0)) / NUMBERS.std(axis=0, ddof=1)
    assert np.allclose(dataset.x, expected)
    assert np.bincount(dataset.fold).tolist() == [0] + [5] * 10


def test_rows_with_missing_values_are_left_out_and_named(tmp_path, capsys):
    (tmp_path / "gaps.csv").write_text("a,b\n1,2\n3,\n5,7\n")
    assert len(load_file(tmp_path / "gaps.csv").x) == 2
    assert "1 rows with missing values left out" in capsys.readouterr().err


def test_the_setting_of_each_size_is_the_authors_choice():
    assert paper_setting(2_178, 4) == Setting(1, 10, 0)
    assert paper_setting(4_177, 8) == Setting(1, 10, 4)
    assert paper_setting(8_192, 22) == Setting(10, 10, 4)
    assert paper_setting(58_509, 48) == Setting(256, 256, 4)
    assert paper_setting(1_509_637, 3) == Setting(256, 256, 0)


def test_training_starts_after_the_test_fold_and_goes_round():
    fold = np.arange(1, 11).repeat(2)
    dataset = Dataset("numbered", fold[:, None].astype(float), fold)
    assert [rows[0, 0] for rows in dataset.train(3)] == [4, 5, 6, 7, 8, 9, 10, 1, 2]
    assert dataset.test(3).tolist() == [[3.0], [3.0]]
