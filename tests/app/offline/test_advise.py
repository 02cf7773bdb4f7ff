"""`faust-oslrau advise`: what fields hold, which settings pay, and a file that can be used."""

import re
import tomllib
from datetime import UTC, datetime

import numpy as np
import orjson
import pytest
from as_records import as_records
from command_line import run, run_well
from hypothesis import given
from hypothesis import strategies as st
from kafka_client import KafkaClient

from faust_oslrau.app.brokers import EmbeddedBroker
from faust_oslrau.app.offline.advice import Advice, Advisor, Choice
from faust_oslrau.app.offline.advised_file import advised_file
from faust_oslrau.app.settings import Settings, load_settings

N = 3000


def advise(folder, rows, *arguments):
    """Run the command on rows; return its result, and the settings that it wrote."""
    path, out = folder / "log.ndjson", folder / "advised.toml"
    lines = (row if isinstance(row, bytes) else orjson.dumps(row) for row in rows)
    path.write_bytes(b"\n".join(lines))
    result = run("advise", path, "--out", out, *arguments)
    return result, load_settings(out, {}) if out.exists() else None


def machines(n=N):
    """Ten machines whose levels differ, an HTTP status, a counter, an identifier and a time."""
    rng = np.random.default_rng(0)
    level = (10 * rng.normal(size=(10, 2))).tolist()
    return [
        {
            "machine": f"m{i % 10}",
            "x": level[i % 10][0] + rng.normal(),
            "of": {"y": level[i % 10][1] + rng.normal()},
            "status": int(rng.choice([200, 404, 503], p=[0.9, 0.05, 0.05])),
            "ok": bool(rng.random() < 0.9),
            "seq": i,
            "id": f"{rng.integers(2**60):x}",
            "at": 1_790_000_000 + 60 * i,
        }
        for i in range(n)
    ]


def test_kinds_time_entity_and_alarm_rate_are_found_for_a_replay(tmp_path):
    result, settings = advise(tmp_path, machines(), "--topic", "lathes", "--alerts-a-day", "3")
    assert result.exit_code == 0, result.output
    assert settings.source_topics == ("lathes",)
    assert settings.entity == "machine" and settings.time == "at"
    kinds = {"status": "category", "ok": "category", "seq": "ignored", "id": "ignored"}
    assert dict(settings.kinds) == kinds
    assert settings.alarm_rate == 0.002  # 3 of 1,440 a day
    assert settings.history is None and settings.seasons is None
    text = (tmp_path / "advised.toml").read_text()
    assert re.search(r"# [0-9]+ alarms without these settings, [0-9]+ with them, [0-9]+ in", text)
    assert "# machine +" in text and "seq: only grows" in text and "history" in text
    assert "trying entity = machine" in result.output
    check_replay(tmp_path)
    (tmp_path / "default.toml").touch()
    files = (tmp_path / name for name in ("default.toml", "advised.toml", "log.ndjson"))
    assert "alarms in both" in run_well("compare", *files).output


def check_replay(folder):
    """Score the log with the settings that were written."""
    log, advised, out = (folder / name for name in ("log.ndjson", "advised.toml", "scores"))
    told = run_well("replay", log, "--settings", advised, "--out", out).output
    assert f"{N:,} scored" in told and "0 rejected" in told


def test_the_file_for_categories_alone_is_one_for_replay(tmp_path):
    chosen = ("machine", "status", "ok", "id")  # which hardly comes again
    settings = advise(tmp_path, [{name: row[name] for name in chosen} for row in machines()])[1]
    assert settings.entity is None
    check_replay(tmp_path)


def payments(cards, n=6000):
    """Payments by cards that each have a level of their own."""
    rng = np.random.default_rng(3)
    of, level = rng.integers(cards, size=n), rng.normal(size=cards)
    amount = level[of] + 0.2 * rng.normal(size=n)
    return [
        {"card": f"c{k:03}", "amount": x, "to": str(rng.choice(["a", "b"]))}
        for k, x in zip(of, amount.tolist(), strict=True)
    ]


def test_an_entity_stays_one_where_its_values_are_too_many_to_be_told_apart(tmp_path):
    settings = advise(tmp_path, [*payments(300), b"["])[1]
    assert settings.entity == "card"


def test_a_category_that_the_first_records_do_not_show_is_named(tmp_path):
    given = tmp_path / "given.toml"
    given.write_text('entity = "to"')
    assert dict(advise(tmp_path, payments(200), "--settings", str(given))[1].kinds) == {
        "card": "category"
    }


def test_of_many_categories_no_more_are_named_than_records_would_choose(tmp_path):
    rng = np.random.default_rng(0)
    flags = (rng.random((300, 150)) < 0.5).tolist()
    rows = [{"x": rng.normal(), **{f"f{i}": flag for i, flag in enumerate(of)}} for of in flags]
    result, settings = advise(tmp_path, rows)
    assert result.exit_code == 0, result.output
    assert len(settings.kinds) == 16


def test_a_history_pays_where_records_follow_each_other_and_logarithms_where_they_are_skewed(
    tmp_path,
):
    rng, x, rows = np.random.default_rng(2), 0.0, []
    for _ in range(N):
        x = 0.99 * x + 0.1 * rng.normal()
        rows.append({"x": x, "size": float(np.exp(2.0 * rng.normal()))})
    settings = advise(tmp_path, rows)[1]
    assert settings.history == ("10",) and settings.transforms == (("size", "log"),)


def test_no_history_pays_where_mixtures_fit_independent_records_about_as_well():
    rng = np.random.default_rng(27)
    x = rng.normal(size=(5000, 5)) @ (np.eye(5) + 0.6 * rng.normal(size=(5, 5)))
    records = as_records([{f"s{v}": row[v] for v in range(5)} for row in x.tolist()])
    advice = Advisor(records, Settings(), lambda what: None).advise()
    assert advice.settings == Settings()


@pytest.mark.parametrize(
    "own",
    [
        lambda rng: rng.normal(),
        lambda rng: 100,
        lambda rng: 0.5 * round(0.4 * rng.normal()),
        lambda rng: max(0.0, rng.normal()),
    ],
    ids=["other numbers", "a constant", "few values", "zeros"],
)
def test_nothing_pays_of_what_is_random_though_numbers_come_again_exactly(tmp_path, own):
    rng = np.random.default_rng(7)
    rows = [
        {"x": rng.normal(), "y": rng.normal(), "own": own(rng), "zone": f"z{rng.integers(8)}"}
        for _ in range(N)
    ]
    result, settings = advise(tmp_path, rows)
    assert result.exit_code == 0 and settings == Settings()
    text = (tmp_path / "advised.toml").read_text()
    assert "# The defaults are right." in text
    found = re.findall(r"([+-][0-9.]+) ± ", text)
    assert len(found) >= 3 and max(abs(float(gain)) for gain in found) < 0.2


def test_a_log_of_constants_alone_has_nothing_to_advise(tmp_path):
    result, settings = advise(tmp_path, [{"x": 7, "y": 1.5}] * 600)
    assert result.exit_code == 0 and settings == Settings()


def advisor_of(records):
    return Advisor(records, Settings(), lambda what: None)


def advised_transforms(rows):
    advisor = advisor_of(as_records(rows, time=None))
    advisor._transforms()
    return dict(advisor._settings.transforms)


def test_a_logarithm_pays_beside_many_fields_that_it_does_not_change():
    rng = np.random.default_rng(8)
    rows = [
        {"size": float(rng.lognormal(3, 1))} | {f"n{v}": rng.normal() for v in range(15)}
        for _ in range(N)
    ]
    assert advised_transforms(rows) == {"size": "log"}


def test_skewed_fields_have_transforms_that_take_their_values_and_others_do_not_spoil_them():
    rng = np.random.default_rng(9)
    size = rng.lognormal(3, 2, (N, 3)) * [1.0, 1.0, 10.0]
    rows = [
        {
            "size": float(a),
            "wait": float(b) if rng.random() < 0.9 else 0.0,
            "net": float(c) if rng.random() < 0.9 else -float(c) / 20,
            # skewed by a few that are far off, and no scale brings them near
            "rare": float(rng.normal(50 if rng.random() < 0.02 else 10)),
        }
        for a, b, c in size
    ]
    assert advised_transforms(rows) == {"size": "log", "wait": "log1p", "net": "asinh"}


def test_random_names_are_no_entities_where_a_level_drifts(tmp_path):
    rng = np.random.default_rng(12)
    rows = [
        {"x": 0.01 * i + rng.normal(), "y": rng.normal(), "zone": f"z{rng.integers(30)}"}
        for i in range(N)
    ]
    assert advise(tmp_path, rows)[1].entity is None


def advised_kinds(rows):
    advisor = advisor_of(as_records(rows, time=None))
    advisor._kinds()
    return dict(advisor._settings.kinds), [each for each in advisor._choices if not each.is_advised]


@pytest.mark.parametrize("modes", [[0, 1, 2, 3, 4], [-1, 0, 1, 2], [0.5, 1.0, 1.5, 2.0, 2.5]])
def test_numbers_that_say_more_of_others_as_categories_are_some(modes):
    rng = np.random.default_rng(10)
    level = (4.0 * rng.permutation(len(modes))).tolist()
    of = rng.integers(len(modes), size=N)
    rows = [
        {"mode": modes[k], "x": level[k] + rng.normal(), "y": rng.normal()} for k in of.tolist()
    ]
    assert advised_kinds(rows)[0] == {"mode": "category"}


def test_numbers_that_say_as_much_of_others_as_they_are_stay_numbers():
    rng = np.random.default_rng(11)
    rows = [
        {"stars": int(stars), "errors": int(rng.poisson(0.7)), "x": 0.3 * stars + rng.normal()}
        for stars in rng.integers(1, 6, size=N).tolist()
    ]
    kinds, left = advised_kinds(rows)
    assert kinds == {}
    assert [choice.value for choice in left] == [
        ((name, "category"),) for name in ("stars", "errors")
    ]


def stamped(ahead, own=True):
    """Records with times that are so many seconds ahead of when they happened, by name."""
    times = [10**9 + i for i in range(500)]
    found = as_records(
        {"x": at * at % 7 + 0.5} | {name: at + seconds for name, seconds in ahead.items()}
        for at in times
    )
    return [
        record._replace(timestamp=1000 * at if own else None)
        for at, record in zip(times, found, strict=True)
    ]


def advised_time(records):
    advisor = advisor_of(records)
    advisor._time()
    return advisor._settings.time


def test_of_several_times_the_one_nearest_to_the_records_is_taken_and_none_of_the_future():
    created, sent, expires = {"created": -3600}, {"sent": -1}, {"an_end": 90_000}
    assert advised_time(stamped(expires | created | sent)) == "sent"
    assert advised_time(stamped(expires)) is None
    assert advised_time(stamped(expires | {"at": 0}, own=False)) == "at"


@pytest.mark.parametrize(
    "other",
    [
        lambda at: "2026-01-01",
        lambda at: datetime.fromtimestamp(at, UTC).date().isoformat(),
        lambda at: datetime.fromtimestamp(at + 3e7, UTC).isoformat(),
        lambda at: 300 * (at // 300),
    ],
    ids=["one date", "dates", "a year ahead", "windows"],
)
def test_in_a_file_the_time_is_the_finest_that_moves_with_the_records_and_of_equals_the_first(
    other,
):
    start = 1_790_000_000
    rows = [{"x": i * i % 7 + 0.5, "another": other(start + 60 * i), "ts": start + 60 * i}
            for i in range(3000)]  # fmt: skip
    assert advised_time(as_records(rows, time=None)) == "ts"


def test_a_number_that_moves_at_another_pace_than_times_that_are_texts_is_no_time():
    at = [datetime.fromtimestamp(1_790_000_000 + i, UTC).isoformat() for i in range(3000)]
    rows = [{"at": each, "bytes": 10**9 + 900 * i} for i, each in enumerate(at)]
    assert advised_time(as_records(rows, time=None)) == "at"


def timed(times, partition=0):
    """Records with these timestamps in milliseconds."""
    rows = ({"x": x} for x in np.random.default_rng(5).normal(size=len(times)).tolist())
    return [
        record._replace(timestamp=int(at))
        for at, record in zip(times, as_records(rows, partition), strict=True)
    ]


def advised_rate(records, partitions=None):
    advice = Advisor(records, Settings(), lambda what: None, partitions).advise(20)
    (rate,) = (choice for choice in advice.choices if choice.name == "alarm_rate")
    return rate.value, rate.why


def test_alerts_a_day_are_those_of_all_partitions_whatever_one_clock_says():
    minutes = 1_790_000_000_000 + 60_000 * np.arange(N)
    wrong = minutes.copy()
    wrong[[7, 8]] = 0, 10 * minutes[0]
    for times in (minutes, wrong):
        assert advised_rate(timed(times)) == (0.01, "20 of 1,440 usual records a day")
    assert advised_rate(timed(wrong), 10)[1] == "20 of 14,400 usual records a day"
    both = timed(wrong) + timed(minutes[: N // 2], 1)  # the second one was not read to its end
    assert advised_rate(both)[1] == "20 of 2,880 usual records a day"


def test_partitions_of_a_topic_that_are_not_read_count_for_the_alarm_rate(topic_name):
    rows = [orjson.dumps({"x": row["x"], "at": row["at"]}) for row in machines(1000)]
    with EmbeddedBroker() as broker:
        broker.create_topic(topic_name, 3)
        client = KafkaClient(broker.bootstrap_servers)
        client.send(topic_name, [(partition, row) for row in rows for partition in range(3)])
        options = ("--topic", topic_name, "--broker", broker.bootstrap_servers, "--records", "1000")
        told = run_well("advise", *options, "--alerts-a-day", "9").output
    assert "9 of 4,320 usual records a day" in told


def test_what_the_given_settings_say_stays(tmp_path):
    given = tmp_path / "given.toml"
    given.write_text('entity = "ok"\nhistory = ["30s"]\ntime = "at"')
    settings = advise(tmp_path, machines(), "--settings", str(given))[1]
    assert settings.entity is None and settings.history is None and settings.time is None
    text = (tmp_path / "advised.toml").read_text()
    assert "entity" not in text and "history" not in text


def test_chosen_features_stay_and_others_name_entity_and_time(tmp_path):
    given = tmp_path / "given.toml"
    given.write_text('features = ["x", "of.y", "status", "seq"]')
    result, settings = advise(tmp_path, machines(), "--settings", str(given))
    assert result.exit_code == 0, result.output
    assert settings.entity == "machine" and settings.time == "at"
    assert dict(settings.kinds) == {"status": "category"}


@given(st.text(min_size=1), st.text())
def test_any_name_can_be_read_again(name, why):
    choice = Choice("kinds", ((name, "ignored"),), True, why)
    left = Choice("entity", name, False, why)
    try:
        text = advised_file(Advice(Settings(), [choice, left]), 1, "a\nfile")
    except TypeError:  # half a surrogate pair, which no record has
        return
    assert tomllib.loads(text) == {"kinds": {name: "ignored"}}


def test_too_few_records_and_a_file_that_exists_end_in_one_line(tmp_path):
    result, settings = advise(tmp_path, machines(20))
    assert result.exit_code == 1 and settings is None
    assert result.output.splitlines()[-1].startswith("Error: expected records")
    (tmp_path / "advised.toml").touch()
    result = advise(tmp_path, machines(20))[0]
    assert result.exit_code == 2 and "expected a file that is not there yet" in result.output
