"""Topics that are compressed: each codec is read, and written where the setting says so."""

import pytest
from clean_run import assert_as_clean, rows

pytestmark = pytest.mark.real_kafka

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
"""The lowest bits of a batch's attributes."""

_ATTRIBUTES, _LENGTH, _HEAD = 21, 8, 12  # where they lie in a batch


def codecs_of(kafka, topic):
    """Return the codecs of the batches in the first partition of a topic, as it lies on disk."""
    found = set()
    for segment in kafka.data_dir.glob(f"**/{topic}-0/*.log"):
        content, at = segment.read_bytes(), 0
        while at + _HEAD <= len(content):
            size = int.from_bytes(content[at + _LENGTH : at + _HEAD], "big")
            if size == 0:  # a segment is allocated ahead
                break
            is_control = content[at + _ATTRIBUTES + 1] & 0x20
            if not is_control:
                found.add(content[at + _ATTRIBUTES + 1] & 0x07)
            at += _HEAD + size
    return found


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_all_codecs_are_read_and_one_is_written(
    codec, kafka, client, settings, start_worker, topic_name
):
    client.create(topic_name, 1)
    for seed, of_source in enumerate(CODECS):
        compression = None if of_source == "none" else of_source
        client.send(topic_name, rows(100, seed=seed), compression=compression)
    assert codecs_of(kafka, topic_name) == set(CODECS.values())
    worker = start_worker(compression=codec).wait_records(500)
    assert worker.terminate() == 0
    assert codecs_of(kafka, settings.scores_topic) == {CODECS[codec]}
    assert codecs_of(kafka, settings.snapshots_topic) == {CODECS[codec]}
    assert_as_clean(client, settings, 1)
