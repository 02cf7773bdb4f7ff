from __future__ import annotations

import itertools

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


@given(st.sets(st.integers(5, 200), min_size=1), st.integers(1, 50))
def test_each_batch_begins_where_the_one_before_it_ended(offsets, size):
    batches = pack(5, _records(sorted(offsets)), size)
    ends = [5, *(batch.next_offset for batch in batches)]
    assert [batch.position for batch in batches] == ends[:-1]


def test_a_batch_looks_like_its_last_record_to_faust():
    (batch,) = pack(0, _records([4, 7, 9]), 10)
    assert (batch.tp, batch.offset, batch.timestamp) == (("features", 3), 9, 90)
    assert batch.value is batch


@given(
    st.sets(st.integers(5, 200), min_size=1),
    st.integers(1, 50),
    st.integers(1, 100),
    st.sets(st.integers(0, 200)),
)
def test_joined_batches_hold_the_same_records_and_begin_where_one_of_them_began(
    offsets, size, most, dropped
):
    packed = pack(5, _records(sorted(offsets)), size)
    batches = [batch for number, batch in enumerate(packed) if number not in dropped]
    joined = list(join(batches, most))
    assert [r for batch in joined for r in batch.records] == [r for b in batches for r in b.records]
    known = {batch.position: batch for batch in batches}
    for batch in joined:
        first = known[batch.position]
        assert len(batch.records) <= max(most, len(first.records))
        after = [record.offset for record in batch.records[len(first.records) :]]
        assert after == list(range(first.next_offset, batch.next_offset))
    for one, other in itertools.pairwise(joined):
        fit = len(one.records) + len(other.records) <= most
        follows = other.position == other.records[0].offset == one.next_offset
        assert not (fit and follows)
