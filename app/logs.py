"""A worker's logging: readable or JSON lines, with secrets masked and repeated lines dropped."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import orjson
from aiokafka.errors import GroupCoordinatorNotAvailableError

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_LIBRARIES = ("aiokafka", "faust", "mode", "aiohttp")
# Attributes of a log record that become members of its JSON object.
_FIELDS = ("topic", "partition", "offset", "reason", "records", "reasons")
# Kafka clients log each attempt to reach a lost broker, ten times a second.
_REPEAT_SECONDS = 10.0
# How long a consumer group may be without a coordinator before it is an error.
_COORDINATOR_SECONDS = 10.0
# Parts of a message come from outside: they must not start a new line or hide one.
_ESCAPES = {code: repr(chr(code))[1:-1] for code in (*range(32), 0x7F, 0x85, 0x2028, 0x2029)}

logger = logging.getLogger(__name__)


def at(tp: tuple[str, int], offset: int | None = None, **fields: Any) -> dict[str, Any]:
    """Return the `extra` of a logging call: the partition, offset and `fields` of the message."""
    extra = {"topic": tp[0], "partition": tp[1]} | fields
    return extra if offset is None else {**extra, "offset": offset}


class RepeatFilter(logging.Filter):
    """Passes a library's message at most once in ten seconds."""

    def __init__(self) -> None:
        super().__init__()
        self._passed: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether to log the message."""
        now, message = time.monotonic(), str(record.msg)
        if record.name.split(".")[0] not in _LIBRARIES:
            return True
        if now - self._passed.get(message, -_REPEAT_SECONDS) < _REPEAT_SECONDS:
            return False
        self._passed[message] = now
        return True


class CoordinatorFilter(logging.Filter):
    """Passes aiokafka's error about a missing group coordinator only after ten seconds.

    Until then it is normal: a fresh cluster creates the topic of the offsets when the first
    consumer joins, and brokers elect another coordinator when one of them stops.
    """

    def __init__(self) -> None:
        super().__init__()
        self._first = self._last = -_COORDINATOR_SECONDS

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether to log the message."""
        arguments = record.args if isinstance(record.args, tuple) else ()
        if not any(isinstance(each, GroupCoordinatorNotAvailableError) for each in arguments):
            return True
        now = time.monotonic()
        if now - self._last >= _COORDINATOR_SECONDS:
            self._first = now
        self._last = now
        return now - self._first >= _COORDINATOR_SECONDS


class ReadableFormatter(logging.Formatter):
    """Formats a record as one line, followed by the traceback if there is one."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__(_FORMAT)
        self._secrets = tuple(secrets)

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line."""
        record.message = record.message.translate(_ESCAPES)
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        """Return the line and the traceback."""
        return _masked(super().format(record), self._secrets)


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object: time (UTC), level, logger, message, and the `extra`."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._secrets = tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        """Return the object, on one line."""
        moment = datetime.fromtimestamp(record.created, UTC)
        document: dict[str, Any] = {
            "time": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": _masked(record.getMessage(), self._secrets),
        }
        document |= {name: getattr(record, name) for name in _FIELDS if hasattr(record, name)}
        if record.exc_info:
            document["error"] = _masked(self.formatException(record.exc_info), self._secrets)
        return orjson.dumps(document, default=repr, option=orjson.OPT_NON_STR_KEYS).decode()


def readable(line: str) -> str:
    """Return a line of a JSON log as it would be on a terminal; any other line as it is."""
    try:
        found = orjson.loads(line)
        told = "{time} {level} {logger}: {message}".format_map(found)
        return told + "".join(f"\n{found[name]}" for name in ("error",) if name in found)
    except (ValueError, TypeError, KeyError):
        return line


def is_readable() -> bool:
    """Tell whether the log is for people: on a terminal. Elsewhere each line is a JSON object."""
    return sys.stderr.isatty()


def set_up_logging(level: str, secrets: Iterable[str] = ()) -> None:
    """Log to standard error, with `secrets` masked.

    The libraries log warnings and errors only, unless the level is DEBUG.
    """
    handler = logging.StreamHandler()
    formatter = ReadableFormatter if is_readable() else JsonFormatter
    handler.setFormatter(formatter(secrets))
    logging.basicConfig(level=level, handlers=[handler])
    logging.captureWarnings(True)
    if not is_readable():
        sys.excepthook = _log_uncaught
    if level == "DEBUG":
        return
    handler.addFilter(CoordinatorFilter())
    handler.addFilter(RepeatFilter())
    for name in _LIBRARIES:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLevelName(level)))


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    logger.critical("the worker failed: %r", error, exc_info=(kind, error, trace))


def _masked(text: str, secrets: tuple[str, ...]) -> str:
    """Return the text without secrets, including their forms in the repr of requests (bytes)."""
    for secret in filter(None, secrets):
        for form in (secret, repr(secret.encode())[2:-1], repr(secret)[1:-1]):
            text = text.replace(form, "(secret)")
    return text
