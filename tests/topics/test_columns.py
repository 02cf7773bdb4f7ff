"""What a field holds, as its contents show it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faust_oslrau.topics.columns import column_of, columns_of

SECONDS = [i // 10 for i in range(240)]
HELD = {
    ("category", "2 texts"): [["a", "b"] * 50, ["1777593600", "1077593600"] * 50, ["00", "05"] * 9],
    ("category", "3 texts"): [["3.11", "3.12", "3.9"] * 50],
    ("category", "true or false"): [[True, False] * 50],
    ("category", "3 whole numbers with gaps between them"): [[200, 404, 503, 200] * 50],
    ("category", "two different numbers"): [[0, 1, 1] * 500, [0, 1, 1] * 80],
    ("ignored", "hardly any text comes again"): [[f"id-{i}" for i in range(100)]],
    ("ignored", "times"): [
        [f"2026-01-01T00:00:{i % 60:02}Z" for i in range(100)],
        [f"01/May/2026:10:00:{i:02} +0000" for i in SECONDS],
        [f"Fri, 01 May 2026 10:00:{i:02} GMT" for i in SECONDS],
        [f"{1_777_593_600 + i / 10:.3f}" for i in range(240)],
        [1.79e12 + i for i in range(100)],
    ],
    ("ignored", "times without a year"): [[f"May  1 10:00:{i:02}" for i in SECONDS]],
    ("ignored", "only grows"): [list(range(100))],
    ("ignored", "hardly any number or text"): [[[1]] * 50],
    ("count", "a count"): [
        [0] * 195 + [1] * 45, [20, 21] * 120, [0, 1, 12] * 50, [15.0, 20.0, 25.0, 30.0] * 50,
        [0, 1, 2, 1, 0, 3] * 50,
    ],
    ("number", "a number"): [
        [0.5, 1.0] * 120, [0, 1, 50, 500] * 50, [0] * 99 + [1], [-1, 0, 1, 2] * 50, [3] * 100,
        [1e300, 2e300, 5e307] * 50, [0.5, 100.25, 7.125] * 50,
        np.random.default_rng(3).integers(10**6, size=200).tolist(),
    ],
    ("number", "numbers as text"): [[f"{i % 40}.5" for i in range(900)], ["20.31", "19.5"]],
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind_and_why", "contents"), [(kind, each) for kind, held in HELD.items() for each in held]
)
def test_what_a_field_holds(kind_and_why, contents):
    column = column_of("x", contents)
    assert (column.kind, column.why) == kind_and_why


START = 1_790_000_000_000


def jittery(unit, days=0):
    """Times of records in a unit, of devices that differ by seconds; one clock is wrong."""
    off = 1500 * np.random.default_rng(5).normal(size=240)
    times = START + 1000 * np.arange(240) + off - 86_400_000 * days
    return [0, *(times[1:] * unit).astype(np.int64).tolist()]


@pytest.mark.parametrize("unit", [1e-3, 1, 1e3, 1e6])
def test_times_in_any_order_and_unit_are_those_near_their_records(unit):
    times = [START + 1000 * i for i in range(240)]
    column = column_of("at", jittery(unit, days=7), times)
    assert (column.kind, column.why, column.is_time) == ("ignored", "times", True)
    (column,) = columns_of([{"at": at} for at in jittery(unit)], times)
    assert column.is_time


def test_growing_numbers_in_a_field_that_is_named_so_are_no_times():
    column = column_of("transaction_id", [1_000_000_000 + 7 * i for i in range(240)])
    assert (column.kind, column.is_time) == ("ignored", False)


def test_numbers_far_from_the_times_of_their_records_are_numbers():
    times = [START + 1000 * i for i in range(240)]
    for contents in (jittery(1, days=400), [5, 7, 3000] * 80, [1.5 * START] * 120 + [3] * 120):
        assert not column_of("x", contents, times).is_time
        assert not column_of("x", contents, [None] * 240).is_time
    early = [1000 * i for i in range(240)]  # as of a log whose times begin at 0
    assert column_of("x", [3, 1, 2] * 80, early).kind == "count"


@given(
    st.lists(
        st.one_of(st.text(), st.booleans(), st.integers(), st.floats(allow_nan=False)), min_size=1
    )
)
def test_any_contents_are_something(contents):
    assert column_of("x", contents).why


def test_fields_of_few_records_do_not_count():
    values = [{"x": 1.5}] * 200 + [{"rare": 1, "x": [1]}, {}]
    assert [column.name for column in columns_of(values)] == ["x"]


@pytest.mark.parametrize("named_by", ["field", "number", "key"])
def test_counters_of_several_devices_by_turns_are_left_out(named_by):
    rng = np.random.default_rng(3)
    device, level = rng.integers(20, size=240), rng.integers(10**6, size=20)
    seen = [(device[:i] == device[i]).sum() for i in range(240)]
    rows = [
        {"seq": int(level[k] + n), "x": float(x), "load": float(level[k] + x)}
        for k, n, x in zip(device, seen, rng.normal(size=240), strict=True)
    ]
    names = [f"device-{k}" for k in device]
    if named_by != "key":
        of = names if named_by == "field" else (1000 + 7 * device).tolist()
        rows = [{"device": each} | row for each, row in zip(of, rows, strict=True)]
        columns = columns_of(rows)
    else:
        columns = columns_of(rows, keys=[name.encode() for name in names])
    why = {column.name: column.why for column in columns}
    assert why["seq"] == "only grows for each of several"
    assert why["x"] == why["load"] == "a number"


@pytest.mark.parametrize("prefix", ["m-", 1000])
def test_counters_of_devices_of_which_few_come_again_are_left_out(prefix):
    of, total = np.random.default_rng(4).integers(300, size=240), np.arange(240)
    rows = [
        {"meter": prefix + (str(k) if prefix == "m-" else int(k)), "kwh": 1000.5 * int(k % 7) + n}
        for k, n in zip(of, total.tolist(), strict=True)
    ]
    why = {column.name: column.why for column in columns_of(rows)}
    assert why["kwh"] == "only grows for each of several"


def test_identifiers_of_devices_that_are_asked_by_turns_are_a_category():
    rows = [
        {"meter_id": 1000 + i % 300, "total": 50 * (7 * i % 300) + i // 300} for i in range(6000)
    ]
    meter, total = columns_of(rows)
    assert (meter.kind, meter.may_name_entity) == ("category", True)
    assert total.why == "only grows for each of several"


def standing_still(n, rate=0.5, seed=6):
    """Events so far; most records have none."""
    return np.cumsum(np.random.default_rng(seed).poisson(rate, n))


@pytest.mark.parametrize(
    ("name", "x"),
    [
        ("errors_total", 700 + standing_still(240, 0.04)),
        ("http.requestCount", 10**6 + standing_still(240)),
        ("sent", 600.5 * standing_still(240)),
        ("sent", 10**6 + standing_still(3000)),
        ("sent", 10**6 + standing_still(3000) % 1100),
    ],
)
def test_counters_that_stand_still_in_most_records_are_left_out(name, x):
    assert column_of(name, x.tolist()).why == "only grows"


def test_a_counter_of_each_device_that_stands_still_is_left_out():
    of, x = np.arange(240) % 8, 10**4 * (np.arange(240) % 8)
    rows = [
        {"device": f"d{k}", "reads_total": int(level + n)}
        for k, level, n in zip(of, x, standing_still(240) // 8, strict=True)
    ]
    assert columns_of(rows)[1].why == "only grows for each of several"


def test_steps_of_a_level_that_many_devices_share_are_no_counters():
    rows = [{"device": f"d{i % 300}", "day": i // 500 % 7} for i in range(3500)]
    assert columns_of(rows)[0].kind == "count"


@pytest.mark.parametrize(
    ("name", "x"),
    [
        ("level", 50 + standing_still(240)),  # a tank that is filled
        ("level", 50 + standing_still(3000) % 200),  # again and again
        ("level", np.repeat([0, 100], 120)),
        ("disk_total", np.repeat([500, 750], 120)),
        ("age", np.sort(np.random.default_rng(6).integers(18, 90, 240))),
        ("cart.total", np.random.default_rng(6).integers(0, 5000, 240)),
    ],
)
def test_levels_that_rise_for_a_while_or_by_a_step_are_no_counters(name, x):
    assert column_of(name, x.tolist()).kind != "ignored"


def test_numbers_that_grow_within_each_cycle_are_no_counters():
    rows = [{"cycle": i // 24, "angle": 15.0 * (i % 24) + 0.1} for i in range(480)]
    assert {column.name: column.kind for column in columns_of(rows)}["angle"] == "number"


@pytest.mark.parametrize("name", ["id", "user.id", "user_id", "userId", "userID", "ID", "order-Id"])
def test_whole_numbers_in_a_field_that_is_named_so_are_identifiers(name):
    rng = np.random.default_rng(0)
    assert column_of(name, rng.integers(1000, size=240).tolist()).kind == "ignored"
    assert column_of(name, rng.integers(1, 9, size=240).tolist()).kind == "category"
    assert column_of(name, rng.normal(size=240).tolist()).kind == "number"


@pytest.mark.parametrize("name", ["humid", "grid", "SOLID", "liquid", "id.count", "ids", "idle"])
def test_other_names_with_these_letters_are_no_identifiers(name):
    x = np.random.default_rng(0).integers(1000, size=240).tolist()
    assert column_of(name, x).kind == "number"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("status", [200, 500]), ("http.status", [200, 201, 204]), ("http_status", [200, 400, 500]),
        ("statusCode", [200]), ("exit_code", [0, 1, 137]), ("errorCode", [0, 17, 404]),
        ("grpc-code", list(range(17))), ("TYPE", [1, 2, 3]), ("eventType", [-1, 4]),
        ("mcc", list(range(4000, 6000, 100))), ("log.level", [30, 40, 50]), ("logLevel", [0, 20]),
    ],
)  # fmt: skip
def test_whole_numbers_in_a_field_that_is_named_so_are_codes(name, values):
    x = np.random.default_rng(0).choice(values, size=240).tolist()
    assert column_of(name, x).kind == "category"
    assert column_of(name, [each + 0.5 for each in x]).kind == "number"


@pytest.mark.parametrize("name", ["export", "prototype", "decoded", "level", "battery_level"])
def test_other_names_with_these_words_are_no_codes(name):
    x = np.random.default_rng(0).integers(21, size=5000).tolist()
    assert column_of(name, x).kind == "count"


def test_codes_that_hardly_come_again_are_numbers():
    x = np.random.default_rng(0).integers(30_000, size=240).tolist()
    assert column_of("port", x).kind == "number"
