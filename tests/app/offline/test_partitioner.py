from aiokafka.partitioner import DefaultPartitioner
from hypothesis import given
from hypothesis import strategies as st

from faust_oslrau.app.offline.partitioner import partition_of


def test_rows_without_a_key_go_round():
    assert [partition_of(None, row, 3) for row in range(5)] == [0, 1, 2, 0, 1]


@given(st.binary(max_size=20), st.integers(1, 50), st.integers(0, 5))
def test_a_key_goes_where_other_clients_send_it(key, partitions, row):
    choice = DefaultPartitioner()(key, list(range(partitions)), [])
    assert partition_of(key, row, partitions) == choice
