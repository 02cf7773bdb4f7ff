"""Log lines of a worker: for people or as JSON, one a fact, and few where a broker is away."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import orjson

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_LIBRARIES = ("aiokafka", "faust", "mode", "aiohttp")
# What a fact is about, as members of its JSON object.
_FIELDS = ("topic", "partition", "offset", "reason", "records", "reasons")
# Clients try to reach a lost broker ten times a second and say so each time.
_REPEAT_SECONDS = 10.0
# What is in a message came from outside in part: it must neither begin a line nor hide one.
_ESCAPES = {code: repr(chr(code))[1:-1] for code in (*range(32), 0x7F, 0x85, 0x2028, 0x2029)}

logger = logging.getLogger(__name__)


def at(tp: tuple[str, int], offset: int | None = None, **fields: Any) -> dict[str, Any]:
    """Return what a line is about, as the `extra` of a call to a logger."""
    place = {"topic": tp[0], "partition": tp[1]} | fields
    return place if offset is None else {**place, "offset": offset}


class FewRepeats(logging.Filter):
    """Lets a library's message through once in ten seconds, however often it comes."""

    def __init__(self) -> None:
        super().__init__()
        self._passed: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether to let the message through."""
        now, message = time.monotonic(), str(record.msg)
        if record.name.split(".")[0] not in _LIBRARIES:
            return True
        if now - self._passed.get(message, -_REPEAT_SECONDS) < _REPEAT_SECONDS:
            return False
        self._passed[message] = now
        return True


class ReadableFormatter(logging.Formatter):
    """One line a fact, followed by the trace of an error where there is one."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__(_FORMAT)
        self._secrets = tuple(secrets)

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line."""
        record.message = record.message.translate(_ESCAPES)
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        """Return the line and the trace."""
        return _masked(super().format(record), self._secrets)


class JsonFormatter(logging.Formatter):
    """One JSON object a fact: time (UTC), level, logger, message, and what it is about."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._secrets = tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        """Return the object, on one line."""
        moment = datetime.fromtimestamp(record.created, UTC)
        fact: dict[str, Any] = {
            "time": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": _masked(record.getMessage(), self._secrets),
        }
        fact |= {name: getattr(record, name) for name in _FIELDS if hasattr(record, name)}
        if record.exc_info:
            fact["error"] = _masked(self.formatException(record.exc_info), self._secrets)
        return orjson.dumps(fact, default=repr, option=orjson.OPT_NON_STR_KEYS).decode()


_FORMATTERS = {"readable": ReadableFormatter, "json": JsonFormatter}


def set_up_logging(level: str, form: str = "readable", secrets: Iterable[str] = ()) -> None:
    """Log to standard error, `secrets` masked.

    The libraries log only what is worth a warning, unless at DEBUG.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(_FORMATTERS[form](secrets))
    logging.basicConfig(level=level, handlers=[handler])
    logging.captureWarnings(True)
    if form == "json":
        sys.excepthook = _log_uncaught
    if level == "DEBUG":
        return
    handler.addFilter(FewRepeats())
    for name in _LIBRARIES:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLevelName(level)))


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    logger.critical("the worker failed: %r", error, exc_info=(kind, error, trace))


def _masked(text: str, secrets: tuple[str, ...]) -> str:
    """Return the text without secrets, also as aiokafka shows requests with them: bytes."""
    for secret in filter(None, secrets):
        for form in (secret, repr(secret.encode())[2:-1], repr(secret)[1:-1]):
            text = text.replace(form, "(secret)")
    return text
