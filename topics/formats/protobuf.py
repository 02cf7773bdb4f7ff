"""Records of Protobuf, read by the schema of their writer.

A registry stores the text of a schema. protoc, which grpcio-tools brings, reads it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.resources import files as resources
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import DecodeError, EncodeError
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

from .documents import as_json, object_maker
from .errors import ContentError, SchemaError
from .framing import HEADER_BYTES
from .protobuf_rows import TIMESTAMP, with_times
from .schemas import Schema
from .shapes import EACH, Shape
from .zigzag import zigzag

_NAME = "record.proto"
_WRAPPERS = {
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String")
}
_MILLISECONDS, _NANOSECONDS = 1e3, 1e-6
# Of what protoc writes, beside warnings and lines of its log: an error, and where it is.
_TOLD = re.compile(r"^\S+:(\d+:\d+: (?!warning:)| File not found).*$", re.MULTILINE)
_MOST_INDEXES = 100  # levels of nesting that protobuf reads

_Get = Callable[[Any], Any]
"""Returns a message or a field's content as plain values."""


class _ProtobufCodec:
    def __init__(self, file: FileDescriptorProto, pool: DescriptorPool) -> None:
        self._file = file
        self._pool = pool
        self.shape = _shape(self._message((0,)), {}) if file.message_type else None
        # By the bytes that name a message of the file; most schemas have one.
        self._readers: dict[bytes, tuple[Callable[[bytes], Any], _Get]] = {}

    def decode(self, value: bytes) -> bytes:
        end = self._end_of_indexes(value)
        named = value[HEADER_BYTES:end]
        if named not in self._readers:
            self._readers[named] = self._reader(value)
        parse, plain = self._readers[named]
        try:
            return as_json(plain(parse(value[end:])))
        except DecodeError:
            raise ContentError("it is no message of the schema, or ends within one") from None
        except UnicodeDecodeError as error:
            raise ContentError(str(error)) from error

    def encode(self, document: Any) -> bytes:
        try:
            descriptor = self._message((0,))
            message = ParseDict(with_times(document, descriptor), GetMessageClass(descriptor)())
            return b"\0" + bytes(message.SerializeToString())
        except (ParseError, EncodeError, TypeError, AttributeError, ValueError) as error:
            raise ContentError(" ".join(str(error).split())) from error

    def _reader(self, value: bytes) -> tuple[Callable[[bytes], Any], _Get]:
        indexes, _ = _indexes(value)
        message = self._message(indexes)
        return GetMessageClass(message).FromString, _message(message, {})

    def _end_of_indexes(self, value: bytes) -> int:
        # The first message of a file is a zero byte.
        if value[HEADER_BYTES : HEADER_BYTES + 1] == b"\0":
            return HEADER_BYTES + 1
        return _indexes(value)[1]

    def _message(self, indexes: Sequence[int]) -> Descriptor:
        name, messages = self._file.package, self._file.message_type
        for index in indexes:
            if not 0 <= index < len(messages):
                raise ContentError(f"the schema has no message {list(indexes)}")
            name = f"{name}.{messages[index].name}"
            messages = messages[index].nested_type
        return self._pool.FindMessageTypeByName(name.removeprefix("."))


def new_codec(schema: Schema) -> _ProtobufCodec:
    """Return what reads and writes the records of a schema.

    Raises
    ------
    SchemaError
        It is no Protobuf.
    """
    pool, files = DescriptorPool(), _compiled(schema).file
    for file in files:
        pool.Add(file)
    return _ProtobufCodec(files[-1], pool)


def _shape(descriptor: Descriptor, known: dict[str, dict[str, Any]]) -> Shape:
    """Return the names of a message's fields, of which JSON has another spelling, too."""
    if descriptor.full_name.startswith("google.protobuf."):  # JSON has forms of its own
        return None
    if descriptor.full_name in known:  # a message may contain its own kind
        return known[descriptor.full_name]
    found = known[descriptor.full_name] = {}
    for field in descriptor.fields:
        found[field.name] = found[field.json_name] = _shape_of_field(field, known)
    return found


def _shape_of_field(field: FieldDescriptor, known: dict[str, dict[str, Any]]) -> Shape:
    if field.message_type is None:
        return None
    if field.message_type.GetOptions().map_entry:
        return {EACH: _shape_of_field(field.message_type.fields_by_name["value"], known)}
    inner = _shape(field.message_type, known)
    return {EACH: inner} if field.is_repeated else inner


def _compiled(schema: Schema) -> FileDescriptorSet:
    """Return all that a schema refers to, in the order of its use, and the schema."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for place, text in (*schema.references, (_NAME, schema.text)):
            _write(folder, place, text)
        out = folder / "compiled"
        # A process of its own: what protoc tells of errors goes to its stderr.
        command = [sys.executable, "-P", "-m", "grpc_tools.protoc"]  # P: not from this folder
        command += ["--include_imports", f"-I{folder}"]
        command += [f"-I{resources('grpc_tools') / '_proto'}", f"--descriptor_set_out={out}"]
        done = subprocess.run(
            [*command, str(folder / _NAME)], capture_output=True, text=True, check=False
        )
        if done.returncode < 0:
            raise OSError(f"protoc was ended by signal {-done.returncode}")
        if done.returncode != 0:
            told = _TOLD.search(done.stderr.replace(f"{folder}/", ""))
            raise SchemaError(f"expected a Protobuf schema, {told[0] if told else 'it has errors'}")
        return FileDescriptorSet.FromString(out.read_bytes())


def _write(folder: Path, place: str, text: str) -> None:
    path = PurePosixPath(place)
    if path.is_absolute() or ".." in path.parts:
        raise SchemaError(f"expected a file inside the schema, got {place!r}")
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _indexes(value: bytes) -> tuple[tuple[int, ...], int]:
    """Return which message of the file follows, from the outer one to the inner, and where."""
    try:
        count, at = zigzag(value, HEADER_BYTES)
        if not 0 <= count <= _MOST_INDEXES:
            raise ContentError(f"it names a message by {count} indexes")
        found = []
        for _ in range(count):
            index, at = zigzag(value, at)
            found.append(index)
    except IndexError:
        raise ContentError("it ends before its message") from None
    return tuple(found) or (0,), at


def _message(descriptor: Descriptor, known: dict[str, _Get]) -> _Get:
    """Return what makes an object of a message; fields keep the names of the schema."""
    if descriptor.full_name in known:
        return known[descriptor.full_name]
    # A message may contain its own kind: it is found here while its fields are looked at.
    known[descriptor.full_name] = lambda message: get(message)
    make = object_maker([field.name for field in descriptor.fields])
    getters = [_field(field, known) for field in descriptor.fields]

    get = _whole(lambda message: make(*[read(message) for read in getters]))
    return get


def _whole(read: _Get) -> _Get:
    """Return what reads a message, and refuses bytes that are none of its fields.

    The schema is that of the writer, who knew all fields.
    """

    def get(message: Any) -> Any:
        if len(UnknownFieldSet(message)):
            raise ContentError("it has fields that its schema does not have")
        return read(message)

    return get


def _field(field: FieldDescriptor, known: dict[str, _Get]) -> _Get:
    """Return what reads a field of a message; a message or `optional` that is not set is null."""
    name, plain = field.name, _plain(field, known)
    if field.is_repeated:
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            inner = _plain(field.message_type.fields_by_name["value"], known)
            return lambda message: {
                str(key): inner(content) for key, content in getattr(message, name).items()
            }
        return lambda message: list(map(plain, getattr(message, name)))
    if field.has_presence:
        return lambda message: plain(getattr(message, name)) if message.HasField(name) else None
    return lambda message: plain(getattr(message, name))


def _plain(field: FieldDescriptor, known: dict[str, _Get]) -> _Get:
    """Return what makes a plain value of one content of a field."""
    if field.type == FieldDescriptor.TYPE_BYTES:
        return lambda content: None
    if field.enum_type is not None:
        names = {value.number: value.name for value in field.enum_type.values}
        return lambda content: names.get(content, str(content))
    if field.message_type is None:
        return lambda content: content
    if field.message_type.full_name == TIMESTAMP:
        return _whole(
            lambda content: content.seconds * _MILLISECONDS + content.nanos * _NANOSECONDS
        )
    if field.message_type.full_name in _WRAPPERS:
        return _whole(attrgetter("value"))
    return _message(field.message_type, known)
