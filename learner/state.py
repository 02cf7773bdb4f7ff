"""State as bytes: a versioned, checksummed container of named arrays and plain values.

Layout: 8 bytes of magic with the format's version, the length of the header (4 bytes, little
endian), the header as JSON (kind, values, and each array's name, type and shape), the arrays one
after the other in little-endian order, and a 16-byte BLAKE2b digest of all of it. Reading never
executes anything and allocates no more than the bytes it was given.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import StateError, StateVersionError

FORMAT_VERSION = 1
MAGIC = b"oslrau\0" + bytes([FORMAT_VERSION])
LENGTH = struct.Struct("<I")
DIGEST_SIZE = 16
DTYPES = {"<f8", "<f4", "<i8", "<i4", "|i1", "|u1"}

Array = NDArray[Any]

Parts = Sequence[bytes | memoryview]
"""Bytes in pieces, to be joined in this order."""


MOST_RECORDS = 2**53
"""Most records that a double can count one by one; no stream is as long."""


def pack(kind: str, values: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Pack values that JSON can hold and arrays of the types in DTYPES."""
    return b"".join(parts(kind, values, arrays))


def parts(kind: str, values: Mapping[str, Any], arrays: Mapping[str, Array | Parts]) -> Parts:
    """Return what ``pack`` joins, without copying the arrays, which may have 100 MB.

    An array may be given as the parts of another container. The parts are valid until the next
    change of an array.
    """
    layout = [
        [name, array.dtype.str, list(array.shape)]
        if isinstance(array, np.ndarray)
        else [name, "|u1", [sum(map(len, array))]]
        for name, array in arrays.items()
    ]
    header = json.dumps({"kind": kind, "values": values, "arrays": layout}).encode()
    content = chain.from_iterable(map(_buffers, arrays.values()))
    found = [MAGIC, LENGTH.pack(len(header)), header, *content]
    digest = blake2b(digest_size=DIGEST_SIZE)
    for part in found:
        digest.update(part)
    return [*found, digest.digest()]


def _buffers(array: Array | Parts) -> Parts:
    """Return an array's bytes in C order, without copying them if they are in that order."""
    if not isinstance(array, np.ndarray):
        return array
    return [np.ascontiguousarray(array).reshape(-1).view(np.uint8).data]


def unpack(data: bytes, kind: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read what ``pack`` wrote.

    Raises
    ------
    StateError
        The bytes are damaged, of another format version, or of another kind.
    """
    body = _checked_body(data)
    (length,) = LENGTH.unpack_from(body, len(MAGIC))
    start = len(MAGIC) + LENGTH.size
    try:
        header = json.loads(bytes(body[start : start + length]))
        found, values, layout = header["kind"], dict(header["values"]), header["arrays"]
        arrays = _read_arrays(body[start + length :], layout)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StateError(f"state: expected a header with values and arrays, {error}") from error
    if found != kind:
        raise StateError(f"state: expected the kind {kind!r}, got {found!r}")
    return values, arrays


def _checked_body(data: bytes) -> memoryview:
    """Return all but the digest, which must match; a view, as a copy may have 100 MB."""
    least = len(MAGIC) + LENGTH.size + DIGEST_SIZE
    if len(data) < least or data[: len(MAGIC) - 1] != MAGIC[:-1]:
        raise StateError(f"state: expected the magic {MAGIC[:-1]!r}, got {bytes(data[:8])!r}")
    if data[len(MAGIC) - 1] != FORMAT_VERSION:
        raise StateVersionError(
            f"state: expected format version {FORMAT_VERSION}, got {data[len(MAGIC) - 1]}"
        )
    body, digest = memoryview(data)[:-DIGEST_SIZE], bytes(data[-DIGEST_SIZE:])
    if blake2b(body, digest_size=DIGEST_SIZE).digest() != digest:
        raise StateError("state: the checksum does not match, the bytes are damaged")
    return body


def _read_arrays(data: memoryview, layout: list[Any]) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for name, dtype, shape in layout:
        if dtype not in DTYPES or any(type(n) is not int or n < 0 for n in shape):
            raise ValueError(f"not the array {name!r} of type {dtype!r} and shape {shape!r}")
        count = math.prod(shape)
        size = count * np.dtype(dtype).itemsize
        if size > len(data):
            raise ValueError(f"not {size} bytes of the array {name!r} where {len(data)} are left")
        arrays[name] = np.frombuffer(data[:size], dtype).reshape(shape).copy()
        data = data[size:]
    if len(data) > 0:
        raise ValueError(f"not {len(data)} bytes more than the arrays need")
    return arrays


def record_count(value: Any) -> int:
    """Return a number of records; StateError where it cannot be one."""
    n = int(value)
    if not 0 <= n < MOST_RECORDS:
        raise StateError(f"state: expected a number of records, got {n}")
    return n
