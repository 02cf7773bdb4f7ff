"""How entities are tried on a log: against names that say nothing."""

import json

from as_records import as_records

from faust_oslrau.app.offline.trials import dealt_anew


def test_entities_are_dealt_anew_to_the_records_that_have_one():
    rows = [{"of": {"who": i % 9}, "x": i} if i % 3 else {"x": i} for i in range(90)]
    records = as_records(rows, key=lambda offset: b"%d" % offset)
    new = [json.loads(record.value) for record in dealt_anew(records, "of.who")]
    assert [row["x"] for row in new] == list(range(90))
    who, old = ([row["of"]["who"] if "of" in row else None for row in each] for each in (new, rows))
    assert who != old and sorted(filter(None, who)) == sorted(filter(None, old))
    assert [each is None for each in who] == [each is None for each in old]
    keys = [record.key for record in dealt_anew(records, "key")]
    assert keys != sorted(keys) and {*keys} == {record.key for record in records}
