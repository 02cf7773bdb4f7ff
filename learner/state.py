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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from io import BytesIO
from itertools import chain
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from .errors import StateError, StateVersionError


class Extent:
    """The `size` bytes of a file from `start` on.

    A state of 100 MB is read from it piece by piece, and need not be in memory beside the model.
    """

    def __init__(self, file: IO[bytes], start: int, size: int) -> None:
        self._file = file
        self._start = start
        self.size = size

    @classmethod
    def of(cls, data: bytes) -> Self:
        """Return bytes in memory, without copying them."""
        return cls(BytesIO(data), 0, len(data))

    def part(self, start: int, size: int) -> Extent:
        """Return the bytes of a part, as far as it lies within this extent."""
        start = min(start, self.size)
        return Extent(self._file, self._start + start, min(size, self.size - start))

    def read(self) -> bytes:
        """Return all bytes."""
        self._file.seek(self._start)
        return self._file.read(self.size)

    def pieces(self, size: int) -> Iterator[bytes]:
        """Yield the bytes, ``size`` at a time."""
        for start in range(0, self.size, size):
            yield self.part(start, size).read()

    def __enter__(self) -> Self:
        """Return the extent; the end of the context closes its file."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._file.close()


FORMAT_VERSION = 1
MAGIC = b"oslrau\0" + bytes([FORMAT_VERSION])
LENGTH = struct.Struct("<I")
DIGEST_SIZE = 16
_PIECE = 2**20  # bytes that are read at a time
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


@dataclass(frozen=True, slots=True)
class StoredArray:
    """An array in a container, not read yet."""

    content: Extent
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def load(self) -> Array:
        """Return the array, which may be changed; a large one is never in memory twice."""
        array = np.empty(self.shape, self.dtype)
        rest = array.reshape(-1).view(np.uint8)
        for piece in self.content.pieces(_PIECE):
            rest[: len(piece)] = np.frombuffer(piece, np.uint8)
            rest = rest[len(piece) :]
        return array


def unpack(data: bytes | Extent, kind: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read what ``pack`` wrote; raises as ``contents``."""
    values, stored = contents(data if isinstance(data, Extent) else Extent.of(data), kind)
    return values, {name: array.load() for name, array in stored.items()}


def contents(data: Extent, kind: str) -> tuple[dict[str, Any], dict[str, StoredArray]]:
    """Return the values that ``pack`` wrote, and where the arrays are.

    Raises
    ------
    StateError
        The bytes are damaged, of another format version, or of another kind.
    """
    body = _checked_body(data)
    start = len(MAGIC) + LENGTH.size
    (length,) = LENGTH.unpack(body.part(len(MAGIC), LENGTH.size).read())
    try:
        header = json.loads(body.part(start, length).read())
        found, values, layout = header["kind"], dict(header["values"]), header["arrays"]
        arrays = _stored_arrays(body.part(start + length, body.size), layout)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StateError(f"state: expected a header with values and arrays, {error}") from error
    if found != kind:
        raise StateError(f"state: expected the kind {kind!r}, got {found!r}")
    return values, arrays


def _checked_body(data: Extent) -> Extent:
    """Return all but the digest, which must match."""
    first = data.part(0, len(MAGIC)).read()
    least = len(MAGIC) + LENGTH.size + DIGEST_SIZE
    if data.size < least or first[:-1] != MAGIC[:-1]:
        raise StateError(f"state: expected the magic {MAGIC[:-1]!r}, got {first!r}")
    if first[-1] != FORMAT_VERSION:
        raise StateVersionError(f"state: expected format version {FORMAT_VERSION}, got {first[-1]}")
    body = data.part(0, data.size - DIGEST_SIZE)
    digest = blake2b(digest_size=DIGEST_SIZE)
    for piece in body.pieces(_PIECE):
        digest.update(piece)
    if digest.digest() != data.part(body.size, DIGEST_SIZE).read():
        raise StateError("state: the checksum does not match, the bytes are damaged")
    return body


def _stored_arrays(data: Extent, layout: list[Any]) -> dict[str, StoredArray]:
    arrays: dict[str, StoredArray] = {}
    start = 0
    for name, dtype, shape in layout:
        if dtype not in DTYPES or any(type(n) is not int or n < 0 for n in shape):
            raise ValueError(f"not the array {name!r} of type {dtype!r} and shape {shape!r}")
        size = math.prod(shape) * np.dtype(dtype).itemsize
        left = data.size - start
        if size > left:
            raise ValueError(f"not {size} bytes of the array {name!r} where {left} are left")
        arrays[name] = StoredArray(data.part(start, size), np.dtype(dtype), tuple(shape))
        start += size
    if start < data.size:
        raise ValueError(f"not {data.size - start} bytes more than the arrays need")
    return arrays


def record_count(value: Any) -> int:
    """Return a number of records; StateError where it cannot be one."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number and 0 <= value < MOST_RECORDS and value == int(value)):
        raise StateError(f"state: expected a number of records, got {value!r}")
    return int(value)
