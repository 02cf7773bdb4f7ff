"""Records of Protobuf, read by the schema of their writer.

A registry stores the text of a schema. protoc, which grpcio-tools brings, reads it.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib.resources import files as resources
from operator import attrgetter
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import DecodeError, EncodeError
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

from .budget import spend
from .documents import as_json, object_cost, object_maker
from .errors import ContentError, SchemaError
from .framing import HEADER_BYTES
from .protobuf_messages import bounded
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
# What Confluent's serializers know and do not register, as far as records need it: options say
# nothing of how they are written.
_OF_CONFLUENT = {
    "confluent/meta.proto": """
        syntax = "proto3"; package confluent; import "google/protobuf/descriptor.proto";
        message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }
        extend google.protobuf.FileOptions { Meta file_meta = 1088; }
        extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
        extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
        extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
        extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
    """,
    "confluent/type/decimal.proto": """
        syntax = "proto3"; package confluent.type;
        message Decimal { bytes value = 1; int32 precision = 2; int32 scale = 3; }
    """,
}
_OPTIONS = ("--include_imports", "--descriptor_set_out=/dev/stdout")
# What protoc takes as the end of a name.
_ODD_NAME = re.compile(r"[=:\0\r\n]")
# Signals of those who end processes; others are those of a process that fails.
_ENDED = {signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
_MOST_INDEXES = 100  # levels of nesting that protobuf reads

_Get = Callable[[Any], Any]
"""Returns a message or a field's content as plain values."""


class _ProtobufCodec:
    def __init__(self, file: FileDescriptorProto, pool: DescriptorPool) -> None:
        self._file = file
        self._pool = pool
        # By the bytes that name a message of the file; most schemas have one.
        self._readers: dict[bytes, tuple[Callable[[bytes], Any], _Get]] = {}

    @cached_property
    def shape(self) -> Shape:
        return _shape(self._message((0,)), {}) if self._file.message_type else None

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
        parse = bounded(GetMessageClass(message).FromString, message)
        return parse, _message(message, {})

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
    name = _NAME
    while name in dict(schema.references):
        name = f"_{name}"
    files = {name: schema.text, **_OF_CONFLUENT, **dict(schema.references)}
    with tempfile.TemporaryDirectory() as place:
        # Numbers are the names on the disk, whatever a schema calls its files.
        paths = [f"{place}/{number}" for number in range(len(files))]
        for path, text in zip(paths, files.values(), strict=True):
            Path(path).write_bytes(text.encode())
        mapped = [f"-I{_checked(each)}={path}" for each, path in zip(files, paths, strict=True)]
        arguments = Path(place) / "arguments"  # more than a command line holds
        arguments.write_bytes("\n".join([*_OPTIONS, *mapped, f"-I{_google()}", name]).encode())
        done = _run_protoc(arguments)
        if done.returncode != 0:
            raise _refused(done, dict(zip(paths, files, strict=True)))
    return FileDescriptorSet.FromString(done.stdout)


def _checked(name: str) -> str:
    if _ODD_NAME.search(name):
        raise SchemaError(
            f"expected the name of a file without = : and line ends, got {name[:100]!r}"
        )
    return name


def _google() -> str:
    return str(resources("grpc_tools") / "_proto")


def _run_protoc(arguments: Path) -> subprocess.CompletedProcess[bytes]:
    # A process of its own: what protoc tells of errors goes to its stderr.
    command = [sys.executable, "-P", "-m", "grpc_tools.protoc"]  # P: not from this folder
    done = subprocess.run([*command, f"@{arguments}"], capture_output=True, check=False)
    if -done.returncode in _ENDED:
        raise OSError(f"protoc was ended by signal {-done.returncode}")
    if b"Traceback" in done.stderr:
        raise OSError(f"protoc has not started: {done.stderr.decode(errors='replace')[-200:]}")
    return done


def _refused(done: subprocess.CompletedProcess[bytes], names: Mapping[str, str]) -> SchemaError:
    """Return what protoc says of a schema, with the names that the schema gives its files."""
    if done.returncode < 0:
        return SchemaError(f"protoc cannot read it, it ends by signal {-done.returncode}")
    found = _TOLD.search(done.stderr.decode(errors="replace"))
    path, colon, told = (found[0] if found else "it has errors").partition(":")
    return SchemaError(f"expected a Protobuf schema, {names.get(path, path)}{colon}{told}")


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
    names = [field.name for field in descriptor.fields]
    make, cost = object_maker(names), object_cost(names)
    getters = [_field(field, known) for field in descriptor.fields]

    def plain(message: Any) -> Any:
        spend(cost)
        return make(*[read(message) for read in getters])

    known[descriptor.full_name] = get = _whole(plain)
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


def _name(names: Mapping[int, str], number: int) -> str:
    name = names.get(number) or str(number)
    spend(len(name))
    return name


def _plain(field: FieldDescriptor, known: dict[str, _Get]) -> _Get:
    """Return what makes a plain value of one content of a field."""
    if field.type == FieldDescriptor.TYPE_BYTES:
        return lambda content: None
    if field.enum_type is not None:
        names = {value.number: value.name for value in field.enum_type.values}
        return lambda content: _name(names, content)
    if field.message_type is None:
        return lambda content: content
    if field.message_type.full_name == TIMESTAMP:
        return _whole(
            lambda content: content.seconds * _MILLISECONDS + content.nanos * _NANOSECONDS
        )
    if field.message_type.full_name in _WRAPPERS:
        return _whole(attrgetter("value"))
    # Made when it is needed: a message may contain its own kind, or a chain of thousands.
    inner = field.message_type
    return lambda content: _message(inner, known)(content)
