from hypothesis import given
from hypothesis import strategies as st

from faust_oslrau.app.kafka.batches import join, pack
from faust_oslrau.topics import Record


def _records(offsets):
    return [Record("features", 3, offset, offset * 10, None, b"") for offset in offsets]


@given(st.sets(st.integers(5, 200), min_size=1), st.integers(1, 50))
def test_batches_hold_all_records_in_order_and_never_more_than_asked(offsets, size):
    records = _records(sorted(offsets))
    batches = pack(5, records, size)
    assert [record for batch in batches for record in batch.records] == records
    assert all(len(batch.records) <= size for batch in batches)
    ends = [5, *(batch.next_offset for batch in batches)]
    assert [batch.position for batch in batches] == ends[:-1]


@given(
    st.sets(st.integers(5, 200), min_size=1),
    st.integers(1, 50),
    st.integers(1, 100),
    st.sets(st.integers(0, 200)),
)
def test_batches_are_joined_while_none_is_missing_between_and_they_fit(
    offsets, size, most, dropped
):
    packed = pack(5, _records(sorted(offsets)), size)
    batches = [batch for number, batch in enumerate(packed) if number not in dropped]
    expected = []
    for batch in batches:
        records, last = list(batch.records), expected[-1][1] if expected else []
        if last and records[0].offset == last[-1].offset + 1 and len(last + records) <= most:
            last += records
        else:
            expected.append((batch.position, records))
    found = [(batch.position, list(batch.records)) for batch in join(batches, most)]
    assert found == expected
