"""How settings are tried on a log: on numbers that have densities."""

import json

import numpy as np

from faust_oslrau.app.offline.trials import Trials, dealt_anew, rooms
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import Kind, Record
from faust_oslrau.topics.columns import columns_of


def test_a_number_is_spread_over_the_room_of_half_as_many_others():
    assert rooms(np.array([0.1, 0.1, 0.2, 0.2, 0.4, 0.4, 0.9])) == {0.1: 0.1, 0.2: 0.2, 0.4: 0.5}
    assert rooms(np.array([100.0] * 99 + [200.0])) == {100.0: 100.0}
    assert rooms(np.array([0.0] * 5 + [1.0, 2.0, 3.0, 4.0])) == {0.0: 2.0}
    assert rooms(np.array([0.0] * 2 + [1.0, 2.0, 3.0, 4.0])) == {0.0: 1.0}
    assert rooms(np.arange(5.0)) == {}


def test_numbers_are_spread_alike_in_each_trial_and_nothing_else_is():
    rows = [
        {"of": {"x": i % 5 / 2}, "n": i % 4, "limit": 7, "y": i**0.5, "to": "a"} for i in range(400)
    ]
    rows[7] |= {"y": 10**400, "of": "none"}
    records = [
        Record("features", 0, i, 5, b"k", json.dumps(r).encode()) for i, r in enumerate(rows)
    ]
    kinds = {"n": Kind.COUNT}
    trials = Trials([*records, records[0]._replace(value=b"[")], columns_of(rows), kinds, print)
    *found, last = trials._with_densities(Settings())
    assert last.value == b"[" and found[3][:5] == records[3][:5]
    new = [json.loads(record.value) for record in found]
    assert new[7] == rows[7] | {"limit": None}
    del new[7], rows[7]
    assert [row | {"limit": 7, "of": 0} for row in new] == [row | {"of": 0} for row in rows]
    off = np.array([row["of"]["x"] for row in new]) - [row["of"]["x"] for row in rows]
    assert (off >= 0).all() and (off <= 0.5).all() and len(np.unique(off)) > 300
    *again, _ = trials._with_densities(Settings(history=("10",)))
    assert [record.value for record in again] == [record.value for record in found]


def test_entities_are_dealt_anew_to_the_records_that_have_one():
    rows = [{"of": {"who": i % 9}, "x": i} if i % 3 else {"x": i} for i in range(90)]
    values = [json.dumps(row).encode() for row in rows]
    records = [Record("features", 0, i, 5, b"%d" % i, value) for i, value in enumerate(values)]
    new = [json.loads(record.value) for record in dealt_anew(records, "of.who")]
    assert [row["x"] for row in new] == list(range(90))
    who, old = ([row["of"]["who"] if "of" in row else None for row in each] for each in (new, rows))
    assert who != old and sorted(filter(None, who)) == sorted(filter(None, old))
    assert [each is None for each in who] == [each is None for each in old]
    keys = [record.key for record in dealt_anew(records, "key")]
    assert keys != sorted(keys) and {*keys} == {record.key for record in records}
