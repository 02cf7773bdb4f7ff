"""Values as the records of a partition of the topic `features`."""

import orjson

from faust_oslrau.topics import Record


def as_records(values, partition=0, *, first=0, time=0, key=None, headers=()):
    """Return records of bytes, or of what is written as JSON, from an offset on.

    `time` and `key` are of all records, or functions of their offsets.
    """

    def of(offset, given):
        return given(offset) if callable(given) else given

    return [
        Record("features", partition, offset, of(offset, time), of(offset, key),
               value if isinstance(value, bytes) or value is None else orjson.dumps(value), headers)
        for offset, value in enumerate(values, first)
    ]  # fmt: skip
