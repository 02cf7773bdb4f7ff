"""A worker's log as JSON, one object a line."""

import json


def test_lines_name_places_and_many_bad_records_have_few(topics, client, start_worker, topic_name):
    client.send(topic_name, [(0, b"broken\n")] * 500 + [(0, b'{"a": 1}')])
    worker = start_worker().wait_ready().wait_records(501)
    assert worker.terminate() == 0
    facts = [json.loads(line) for line in worker.raw_log().splitlines()]
    rejected = [fact for fact in facts if fact.get("reason") == "not_json"]
    assert [(f["topic"], f["partition"], f["offset"]) for f in rejected] == [
        (topic_name, 0, offset) for offset in range(3)
    ]
    (others,) = [fact for fact in facts if "reasons" in fact]
    assert (others["records"], others["reasons"]) == (497, {"not_json": 497})
