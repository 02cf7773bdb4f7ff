import itertools
import json
import math
import sys
from decimal import Decimal

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faust_oslrau.app.offline import input_lines
from faust_oslrau.app.offline.input_files import open_input
from faust_oslrau.app.offline.input_messages import InputFileError
from faust_oslrau.topics import FeatureDecoder, Reason

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def write(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def documents(source):
    return [json.loads(message.value) for message in source]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a,b,c,d\n1,-2.5e3, ,pump\n+7,.5,007.0,NA\n",
         [{"a": 1, "b": -2500.0, "c": None, "d": "pump"},
          {"a": 7.0, "b": 0.5, "c": 7.0, "d": "NA"}]),
        # Columns with zeros before numbers are codes.
        ("code,x\n51,10\n05,0\n ,0.5\n00,-0\n",
         [{"code": "51", "x": 10}, {"code": "05", "x": 0}, {"code": None, "x": 0.5},
          {"code": "00", "x": 0}]),
        # Columns without a name have that of their place: so pandas writes row numbers.
        (",a,b,\n0,1.5,x,\n", [{"column 1": 0, "a": 1.5, "b": "x", "column 4": None}]),
        # Quotes, blank lines and a byte order mark.
        ('\ufeff"x ""1""",note\r\n\r\n1,"two\nlines"\r\n', [{'x "1"': 1, "note": "two\nlines"}]),
        # Texts of several words may be the only column.
        ("full name\n1 2\nJohn Smith\n", [{"full name": "1 2"}, {"full name": "John Smith"}]),
        ("full name\n1 2\n7 8 9\n", [{"full name": "1 2"}, {"full name": "7 8 9"}]),
    ],
)  # fmt: skip
def test_csv_cells_become_numbers_nulls_or_texts(content, expected, tmp_path):
    assert documents(open_input(write(tmp_path, "a.csv", content))) == expected


def test_csv_cells_of_programs_become_truths_and_nulls(tmp_path):
    path = write(tmp_path, "a.csv", "id,a,b,c\nTrue,True, false,TRUE\nnan,nan,NaN,\n")
    first, second = open_input(path, "id")
    assert json.loads(first.value) == {"id": True, "a": True, "b": False, "c": True}
    assert json.loads(second.value) == dict.fromkeys(["id", "a", "b", "c"])
    assert (first.key, second.key) == (b"True", b"nan")  # a key is what the file has


def test_csv_reads_thousands_of_columns(tmp_path):
    names = [f"c{i}" for i in range(5000)]
    path = write(tmp_path, "a.csv", ",".join(names) + "\n" + ",".join("1" * 5000) + "\n")
    assert documents(open_input(path)) == [dict.fromkeys(names, 1)]
    with pytest.raises(InputFileError, match=r"no column 'id', .* c18, c19 and 4,980 more$"):
        list(open_input(path, "id"))


def test_csv_numbers_keep_every_digit(tmp_path):
    path = write(tmp_path, "a.csv", "a,b\n0.1000000000000000055,123456789012345678901234567890\n")
    (message,) = open_input(path)
    assert message.value == b'{"a":0.1000000000000000055,"b":123456789012345678901234567890}'


@pytest.mark.parametrize("text", ["1e400", "-1e400", "+1e400", "1_0", "inf", "0x10", "1,5"])
def test_csv_text_that_is_no_double_is_rejected_later_not_changed(tmp_path, text):
    path = write(tmp_path, "a.csv", f'a\n"{text}"\n')
    (message,) = open_input(path)
    rejected = FeatureDecoder(("a",), 1000).decode([message.value]).rejected
    expected = Reason.NOT_FINITE if "400" in text else Reason.NOT_A_NUMBER
    assert [rejection.reason for _, rejection in rejected] == [expected]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1: expected a header"),
        ("1,2\n3,4\n", "line 1: expected a header"),
        (",,\n3,4,5\n", "line 1: expected a header"),
        (",3\n4,5\n", "line 1: expected a header .*, got '3' for column 2$"),
        ("a,7\n3,4\n", "line 1: expected a header .*, got '7' for column 2$"),
        ("a;b\n3;4\n", "line 1: expected commas between the columns, got semicolons"),
        ("a\tb\n3\t4\n", "line 1: expected commas between the columns, got tabs"),
        ("a|b\n3|4\n", r"line 1: expected commas between the columns, got bars"),
        ("a^b\n3^4\n", r"line 1: expected commas between the columns, got carets"),
        ("a b c\n3 4 x\n5  6 y\n\n", "line 1: expected commas between the columns, got blanks"),
        ("a,b\r3,4\r", "line 1: expected lines that end with a line feed, got carriage returns"),
        ("a,b,a\n3,4,5\n", "line 1: expected distinct names of columns, got 'a' again"),
        ("a,b\n3,4\n5\n", "line 3: expected 2 cells as in the header, got 1"),
        (b"a,b\n3,\xff\n", "line 2: expected UTF-8"),
        ("a\n" + "x" * 200_000, "line 2: field larger than field limit"),
        ('a,b\n3,4\n5,"bad\n' + "7,8\n" * 9, "line 3: expected a quote at the end of each cell"),
        ('a,b\n3,4\n\n5,"bad\n' + "7,8\n" * 90_000, "line 4: expected a quote at the end"),
        ('a,b\n3,"bad\n7,8\n7,"good"\n', "line 2: expected a quote at the end of each cell"),
        ('a,b\n3,"5" pipe"\n', "line 2: expected a quote .*, two for one within"),
    ],
)
def test_a_broken_csv_names_the_line(tmp_path, content, message):
    with pytest.raises(InputFileError, match=message):
        list(open_input(write(tmp_path, "a.csv", content)))


def test_ndjson_lines_go_byte_for_byte(tmp_path):
    lines = [b'{"a": 1.50}', b"", b"\xff\x00", b'{"a":2}\r']
    path = write(tmp_path, "a.ndjson", b"\n".join(lines))
    assert [message.value for message in open_input(path)] == lines
    ended = write(tmp_path, "b.jsonl", b"\n".join(lines) + b"\n")
    assert [message.value for message in open_input(ended)] == lines


def test_a_line_without_an_end_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(input_lines, "_LONGEST_LINE", 8)
    path = write(tmp_path, "rows.ndjson", b'{"a":1}\n' + b"\0" * 9)
    with pytest.raises(InputFileError, match="line 2: expected at most 8 bytes"):
        list(open_input(path))


def test_a_key_is_the_content_of_its_column(tmp_path):
    csv = write(tmp_path, "a.csv", "id,x\npump-1,1\n,2\n")
    assert [message.key for message in open_input(csv, "id")] == [b"pump-1", None]
    lines = '{"id":"pump-1"}\n{"id":7}\n{"x":1}\n{\n[1]\n'
    ndjson = write(tmp_path, "a.ndjson", lines)
    keys = [message.key for message in open_input(ndjson, "id")]
    assert keys == [b"pump-1", b"7", None, None, None]
    assert [message.key for message in open_input(csv)] == [None, None]


def test_parquet_rows_keep_their_types(tmp_path):
    table = pyarrow.table(
        {
            "a": [1, None],
            "b": pyarrow.array([0.1, math.inf], pyarrow.float32()),
            "c": ["pump", None],
            "d": [{"e": [-math.inf]}, None],
            "f": [Decimal("1.5"), None],
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    first, second = open_input(tmp_path / "a.parquet", "c")
    assert (first.key, second.key) == (b"pump", None)
    assert json.loads(first.value) == {
        "a": 1, "b": float(np.float32(0.1)), "c": "pump", "d": {"e": [-math.inf]}, "f": "1.5",
    }  # fmt: skip
    rejected = FeatureDecoder(("b",), 1000).decode([second.value]).rejected
    assert rejected[0][1].reason is Reason.NOT_FINITE


@pytest.mark.parametrize("damage", ["block", "text"])
def test_damaged_content_of_parquet_is_named(damage, tmp_path):
    content = [b"\xff" if damage == "text" else b"%d" % (n * n) for n in range(1000)]
    texts = pyarrow.array(content, pyarrow.binary()).cast(pyarrow.string(), safe=False)
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"a": texts}), path)
    if damage == "block":
        data = bytearray(path.read_bytes())
        data[100:200] = bytes(100)
        path.write_bytes(data)
    with pytest.raises(InputFileError, match=r"a\.parquet: expected Parquet, ."):
        list(open_input(path))


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    path = write(tmp_path, "a.parquet", b"")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(InputFileError, match=r"pip install 'faust-oslrau\[parquet\]'"):
        open_input(path)


def test_npz_rows_are_named_by_column(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.array([[1.0, np.nan]]), other=np.eye(2), fold=[1])
    assert documents(open_input(tmp_path / "a.npz")) == [{"x0": 1.0, "x1": None}]
    np.savez(tmp_path / "b.npz", only=np.float32([[0.1]]), fold=[1])
    assert documents(open_input(tmp_path / "b.npz")) == [{"x0": float(np.float32(0.1))}]


def test_npz_without_a_clear_matrix_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.eye(2), b=np.eye(2))
    with pytest.raises(InputFileError, match=r"expected a matrix of floats named x.*\['a', 'b'\]"):
        open_input(tmp_path / "a.npz")


@pytest.mark.parametrize("name", ["a.parquet", "a.npz"])
@pytest.mark.parametrize("content", [b"something else", b"PK\x03\x04the start of an archive"])
def test_a_file_of_another_kind_is_refused(tmp_path, name, content):
    with pytest.raises(InputFileError, match=name):
        open_input(write(tmp_path, name, content))


def test_a_missing_file_and_an_unknown_ending_are_refused(tmp_path):
    with pytest.raises(InputFileError, match="expected a regular file"):
        open_input(tmp_path / "none.csv")
    with pytest.raises(InputFileError, match=r"expected a name that ends in \.csv"):
        open_input(write(tmp_path, "a.xls", b""))


@pytest.mark.parametrize("name", ["a.csv", "a.ndjson", "a.parquet", "a.npz"])
def test_the_share_read_grows_to_all_and_a_source_can_be_read_again(tmp_path, name):
    if name == "a.parquet":
        pyarrow.parquet.write_table(pyarrow.table({"x": [1.0] * 10}), tmp_path / name)
    elif name == "a.npz":
        np.savez(tmp_path / name, x=np.ones((10, 1)))
    else:
        write(tmp_path, name, "x\n" + "1\n" * 10)
    source = open_input(tmp_path / name)
    messages = iter(source)
    next(messages)
    assert 0 < source.share_read < 1
    rest = list(messages)
    assert source.share_read == 1
    assert list(source)[1:] == rest


def test_the_place_of_a_row_is_told(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros((2, 1)))
    write(tmp_path, "a.ndjson", "{}\n{}\n")
    for name, place in (("a.csv", "line 5"), ("a.ndjson", "line 2"), ("a.npz", "row 1")):
        write(tmp_path, "a.csv", 'x\n1\n\n"two\nlines"\n3\n')
        source = open_input(tmp_path / name)
        for _ in itertools.islice(source, 2):
            pass
        assert source.place == f"{tmp_path / name} {place}"


@given(st.lists(FINITE, min_size=1, max_size=5))
def test_numbers_keep_every_bit_from_file_to_matrix(tmp_path_factory, numbers):
    folder = tmp_path_factory.mktemp("bits")
    np.savez(folder / "a.npz", x=np.array([numbers]))
    names = [f"x{i}" for i in range(len(numbers))]
    write(folder, "a.csv", ",".join(names) + "\n" + ",".join(map(repr, numbers)) + "\n")
    table = pyarrow.table({n: [v] for n, v in zip(names, numbers, strict=True)})
    pyarrow.parquet.write_table(table, folder / "a.parquet")
    for name in ("a.npz", "a.csv", "a.parquet"):
        values = [message.value for message in open_input(folder / name)]
        rows = FeatureDecoder(names, 10_000).decode(values).rows
        assert rows.tobytes() == np.array([numbers]).tobytes()
