import json
from dataclasses import replace

import numpy as np
import orjson
import pytest
from as_records import as_records

from faust_oslrau.app.pipeline import PartitionPipeline
from faust_oslrau.app.settings import Settings

SETTINGS = Settings(features=("a", "b", "c"), batch_size=32, alarm_rate=0.05)
N = 500


def sensor_rows(n=N, seed=3):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 3)) @ np.array([[1, 0.8, 0], [0, 0.4, 0], [0, 0, 2.0]])
    rows[rng.random(rows.shape) < 0.05] = np.nan
    rows[::97] += 20
    return rows


def values():
    rows = sensor_rows()
    rows[0] = [1.0, 2.0, 3.0]  # the first record chooses the fields
    messages = [orjson.dumps(dict(zip("abc", row, strict=True))) for row in rows.tolist()]
    for at, bad in enumerate([None, b"{", b"[]", b'{"a": "x"}', b'{"a": 1e400}', b"{}"]):
        messages[40 * at + 7] = bad
    return messages


def with_keys(values):
    """Return records with a key, a time and a header each."""
    return as_records(
        values, 2, time=lambda i: 1700000000000 + i, key=lambda i: b"k%d" % i,
        headers=(("h", b"v"),),
    )  # fmt: skip


RECORDS = with_keys(values())


def run(pieces, chosen=SETTINGS):
    pipeline = PartitionPipeline("features", 2, chosen)
    blocks = [pipeline.process(piece) for piece in pieces]
    return pipeline, blocks


@pytest.fixture(scope="module")
def whole():
    return run([RECORDS])


def test_scores_keep_key_and_time_of_their_records(whole):
    _, (block,) = whole
    for message in block.scores:
        record = RECORDS[message.offset]
        assert (message.key, message.timestamp) == (record.key, record.timestamp)
        content = json.loads(message.value)
        assert (content["topic"], content["partition"]) == ("features", 2)
        assert (content["offset"], content["timestamp"]) == (record.offset, record.timestamp)


def test_anomalies_are_the_anomalous_scores_with_their_records(whole):
    _, (block,) = whole
    scores = {m.offset: json.loads(m.value) for m in block.scores}
    expected = [offset for offset, score in scores.items() if score["is_anomaly"]]
    assert [m.offset for m in block.anomalies] == expected != []
    for message in block.anomalies:
        content = json.loads(message.value)
        assert content.pop("record") == json.loads(RECORDS[message.offset].value)
        assert content == scores[message.offset]
        blamed = [item["field"] for item in content["contributions"]]
        assert set(blamed) <= set("abc") and len(blamed) == len(set(blamed)) > 0
        assert message.key == RECORDS[message.offset].key


def test_rejected_records_move_no_score():
    good = [record.value for record in RECORDS if record.offset % 40 != 7]
    noisy = [each for value in good for each in (value, b"\xff", None)]
    _, (with_noise,) = run([with_keys(noisy)])
    _, (without,) = run([with_keys(good)])

    def scores(block):
        keep = ("log_likelihood", "p_value", "n_learned", "warming_up")
        return [[json.loads(message.value)[name] for name in keep] for message in block.scores]

    assert scores(with_noise) == scores(without)


def test_gaps_in_the_log_are_taken_and_steps_back_are_not():
    pipeline = PartitionPipeline("features", 2, SETTINGS)
    pipeline.process([RECORDS[0], RECORDS[5]])
    for again in ([RECORDS[5]], [RECORDS[8], RECORDS[6]]):
        with pytest.raises(ValueError, match="expected offset"):
            pipeline.process(again)
    assert pipeline.next_offset == 6 and pipeline.scorer.n_records == 2


def test_after_another_alarm_rate_messages_are_those_of_a_replay_with_it():
    rare = replace(SETTINGS, alarm_rate=0.01)
    before, (first,) = run([RECORDS[:300]])
    after = PartitionPipeline.restored(before.snapshot(0, 300), rare).process(RECORDS[300:])
    _, (old, replayed) = run([RECORDS[:300], RECORDS[300:]], rare)
    assert (after.scores, after.alerts) == (replayed.scores, replayed.alerts)
    assert first.scores != old.scores


def test_a_drift_is_one_event_at_the_record_that_completed_it():
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(8000, 2))
    rows[6000:] *= 2.5
    records = with_keys(dict(zip("ab", row, strict=True)) for row in rows.tolist())
    _, (block,) = run([records], Settings())
    (event,) = block.events
    assert 6000 < event.offset < 6000 + 3 * 256
    assert (event.key, event.timestamp) == (b"k%d" % event.offset, 1700000000000 + event.offset)
    content = json.loads(event.value)
    assert (content["event"], content["offset"]) == ("drift", event.offset)
    assert content["statistic"] >= 1 and 0 < content["records"] <= 3 * 256
    assert block.drift < 1


def faulty_records(n=3000):
    """Records with impossible values, and later a fault of 40 records; some are rejected."""
    rng = np.random.default_rng(9)
    rows = rng.normal(size=(n, 2))
    rows[1500:1505, 0] = 1e9
    rows[2000:2040, 1] += 7.0
    messages = [orjson.dumps(dict(zip("ab", row, strict=True))) for row in rows.tolist()]
    messages[1990] = b"{"
    return with_keys(messages)


FAULTY = faulty_records()


def incidents(blocks):
    return [json.loads(message.value) for block in blocks for message in block.incidents]


def test_a_fault_is_one_incident_with_a_start_and_an_end():
    pipeline, blocks = run([FAULTY], Settings())
    short, lasting = (
        [event for event in incidents(blocks) if event["incident"] == name]
        for name in dict.fromkeys(event["incident"] for event in incidents(blocks))
    )
    assert [event["state"] for event in short] == ["opened", "closed"]
    assert short[0]["severity_name"] == "minor"
    assert short[0]["incident"] == "features/2/1502"
    assert (short[-1]["length"], short[-1]["anomalies"]) == (5, 5)
    assert short[-1]["offset"] == 1504 + 256 and short[-1]["contributions"][0]["field"] == "a"
    assert {event["state"] for event in lasting} >= {"opened", "closed"}
    start = lasting[-1]["start_offset"]
    assert 1990 < start <= 2001 and lasting[0]["offset"] < 2040
    latest = lasting[-1]["latest_offset"]
    assert 2030 < latest < 2040 and lasting[-1]["length"] == latest - start + 1
    assert lasting[-1]["start_timestamp"] == 1700000000000 + lasting[-1]["start_offset"]
    assert lasting[-1]["contributions"][0]["field"] == "b"
    assert blocks[0].reached["minor"] == 2 and pipeline.open_incidents == []


def test_an_incident_is_sent_with_key_and_time_of_the_record_that_changed_it():
    _, (block,) = run([FAULTY], Settings())
    for message in block.incidents:
        content = json.loads(message.value)
        assert (message.offset, message.timestamp) == (content["offset"], content["timestamp"])
        assert message.key == b"k%d" % message.offset
    offsets = [message.offset for message in block.alerts]
    assert offsets == sorted(offsets) and set(block.incidents) <= set(block.alerts)


def test_the_setting_events_chooses_what_is_sent_and_scores_do_not_depend_on_it():
    chosen = {"records": ["records"], "incidents": ["incidents"], "both": ["records", "incidents"]}
    blocks = {name: run([FAULTY], Settings(events=events))[1][0] for name, events in chosen.items()}
    assert blocks["records"].alerts == blocks["records"].anomalies != []
    assert blocks["incidents"].alerts == blocks["incidents"].incidents != []
    both = blocks["both"]
    assert len(both.alerts) == len(both.anomalies) + len(both.incidents)
    assert blocks["records"].scores == blocks["incidents"].scores == both.scores


def test_an_incident_too_large_for_its_topic_is_sent_without_its_contributions(monkeypatch):
    monkeypatch.setattr("faust_oslrau.app.settings.definitions._MESSAGE_ROOM", -950_000)
    names = ["x" * 80_000 + str(i) for i in range(2)]
    found = (json.loads(record.value).values() for record in FAULTY[:1600])
    records = with_keys(dict(zip(names, row, strict=True)) for row in found)
    _, (block,) = run([records], Settings(max_message_bytes=1_000_000))
    message = block.incidents[0]
    assert "contributions" not in json.loads(message.value)
    assert dict(message.headers)["oslrau-offset"] == b"1502"
