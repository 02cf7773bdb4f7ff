"""Values as the records of a partition of the topic `features`."""

import orjson

from faust_oslrau.topics import Record


def as_records(values, partition=0, *, first=0, time=0, key=None):
    """Return records of bytes, or of what is written as JSON, from an offset on."""
    return [
        Record("features", partition, offset, time, key,
               value if isinstance(value, bytes) else orjson.dumps(value))
        for offset, value in enumerate(values, first)
    ]  # fmt: skip
