"""Requests in versions that aiokafka does not have, written and read here.

An aiokafka connection asks a request for its struct (`prepare`), and that for its bytes and for who
reads the answer. These names are the same in all its versions; the types of its own protocol are
not. The versions here are flexible ones (KIP-482): lengths are those of compact texts and arrays,
and every structure ends with tagged fields.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, BinaryIO, Generic, NamedTuple, Self, TypeVar

T = TypeVar("T")

NO_TAGS = b"\0"
"""The end of a structure without tagged fields."""


def text(content: str) -> bytes:
    """Return a compact text."""
    data = content.encode()
    return _length(len(data) + 1) + data


def many(items: Iterable[bytes]) -> bytes:
    """Return a compact array."""
    listed = list(items)
    return _length(len(listed) + 1) + b"".join(listed)


def _length(number: int) -> bytes:
    data = bytearray()
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    data.append(number)
    return bytes(data)


class Fields:
    """Reads the fields of an answer one after the other."""

    def __init__(self, content: BinaryIO) -> None:
        self._content = content

    def number(self, code: str) -> int:
        """Return a number of a type of the struct module, such as `i`."""
        return int(struct.unpack(f">{code}", self.data(struct.calcsize(f">{code}")))[0])

    def data(self, size: int) -> bytes:
        """Return so many bytes.

        Raises
        ------
        ValueError
            The answer ends before.
        """
        found = self._content.read(size)
        if len(found) != size:
            raise ValueError(f"the answer ends {size - len(found)} bytes too early")
        return found

    def text(self) -> str | None:
        """Return a compact text; None if it is null."""
        found = self.blob()
        return None if found is None else found.decode()

    def blob(self) -> bytes | None:
        """Return compact bytes; None if they are null."""
        size = self._length()
        return None if size == 0 else self.data(size - 1)

    def many(self, read: Callable[[], T]) -> list[T]:
        """Return a compact array, each item by a call of `read`."""
        return [read() for _ in range(self._length() - 1)]

    def end(self) -> None:
        """Pass over the tagged fields at the end of a structure."""
        for _ in range(self._length()):
            self._length()
            self.data(self._length())

    def _length(self) -> int:
        found = shift = 0
        while (byte := self.data(1)[0]) > 127:
            found |= (byte & 127) << shift
            shift += 7
        return found | byte << shift


class _Header(NamedTuple):
    correlation_id: int
    data: bytes = b""

    def encode(self) -> bytes:
        return self.data


class FlexibleRequest(Generic[T]):
    """A request of one version, which aiokafka's clients send as one of their own.

    Parameters
    ----------
    api_key, version
        Numbers of the kind of request and of its version.
    content
        What follows the header.
    read
        Returns what the client returns, from the fields that follow the answer's header.
    """

    def __init__(
        self, api_key: int, version: int, content: bytes, read: Callable[[Fields], T]
    ) -> None:
        self._key, self._version = api_key, version
        self._content = content
        self._read = read

    def prepare(self, versions: Mapping[int, tuple[int, int]]) -> Self:
        """Return the struct to send.

        Raises
        ------
        NotImplementedError
            The broker, which knows these versions, does not know the request's.
        """
        lowest, highest = versions.get(self._key, (0, -1))
        if not lowest <= self._version <= highest:
            raise NotImplementedError(f"no version {self._version} of request {self._key}")
        return self

    def build_request_header(self, correlation_id: int, client_id: str) -> _Header:
        """Return the header that `encode` follows."""
        name = client_id.encode()
        numbers = (self._key, self._version, correlation_id, len(name))
        return _Header(correlation_id, struct.pack(">hhih", *numbers) + name + NO_TAGS)

    def encode(self) -> bytes:
        """Return what follows the header."""
        return self._content

    def parse_response_header(self, content: BinaryIO) -> _Header:
        """Read the header of the answer."""
        fields = Fields(content)
        found = _Header(fields.number("i"))
        fields.end()
        return found

    @property
    def RESPONSE_TYPE(self) -> Any:  # the connection's name for who reads the answer
        """What has `decode`."""
        return self

    def decode(self, content: BinaryIO) -> T:
        """Read what follows the header of the answer."""
        return self._read(Fields(content))
