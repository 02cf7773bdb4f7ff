"""Log lines of a worker: plain, and few where a broker is away."""

from __future__ import annotations

import logging
import time

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_LIBRARIES = ("aiokafka", "faust", "mode", "aiohttp")
# Clients try to reach a lost broker ten times a second and say so each time.
_REPEAT_SECONDS = 10.0


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


def set_up_logging(level: str) -> None:
    """Log to standard error; the libraries only what is worth a warning, unless at DEBUG."""
    logging.basicConfig(format=_FORMAT, level=level)
    if level == "DEBUG":
        return
    for handler in logging.getLogger().handlers:
        handler.addFilter(FewRepeats())
    for name in _LIBRARIES:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLevelName(level)))
