"""What an output topic must keep and take, so that no message is refused or deleted too early."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

CLEANUP = "cleanup.policy"
MAX_BYTES = "max.message.bytes"
RETENTION_MS = "retention.ms"
_RETENTION = (RETENTION_MS, "retention.bytes")
# Brokers since 3.6 refuse records whose time lies outside these limits.
_BEFORE = "message.timestamp.before.max.ms"
_AFTER = "message.timestamp.after.max.ms"
_TIME_TYPE = "message.timestamp.type"
_ANY_TIME = 2**63 - 1
FOREVER = -1

Configuration = Mapping[str, str]


class OutputLimits:
    """The limits that output topics need.

    Parameters
    ----------
    sources
        The configurations of the source topics, as far as they are known.
    max_message_bytes
        The size of the largest message.
    """

    def __init__(self, sources: Sequence[Configuration], max_message_bytes: int) -> None:
        self._bytes = max_message_bytes
        # A score has the time of its record: with a shorter retention it could be deleted at once.
        self._retention = _largest(retention, sources)
        self._ahead = max((_ahead(source) for source in sources), default=0)
        self._times = time_limits(sources)

    def of_new_topic(self) -> dict[str, str]:
        """Return the configuration of a new output topic."""
        limits = {name: str(limit) for name, limit in self._retention.items()}
        return {CLEANUP: "delete", MAX_BYTES: str(self._bytes)} | limits | self._times

    def warnings(self, topic: str, found: Configuration) -> Iterator[str]:
        """Yield what an existing topic with this configuration refuses or deletes."""
        yield from self._size_warnings(topic, found)
        yield from _compaction_warnings(topic, found)
        yield from self._retention_warnings(topic, found)
        yield from self._time_warnings(topic, found)

    def _size_warnings(self, topic: str, found: Configuration) -> Iterator[str]:
        taken = int(found.get(MAX_BYTES, self._bytes))
        if taken < self._bytes:
            yield (
                f"topic {topic} takes messages of {taken} bytes, the worker may send up to "
                f"{self._bytes}: larger messages lose their largest parts; "
                f"set {MAX_BYTES}={self._bytes} to avoid this"
            )

    def _retention_warnings(self, topic: str, found: Configuration) -> Iterator[str]:
        limits = retention(found)
        for name, needed in self._retention.items():
            if _length(limits.get(name, needed)) < _length(needed):
                yield (
                    f"topic {topic} has {name}={limits[name]}, the source topic has a longer "
                    "retention: messages may be deleted before they are read; "
                    f"set {name}={needed} for the same retention"
                )

    def _time_warnings(self, topic: str, found: Configuration) -> Iterator[str]:
        if _is_append_time(found):
            return
        # A record that was new enough for the source may be processed any time later.
        for name, needed in ((_BEFORE, _ANY_TIME), (_AFTER, self._ahead)):
            if int(found.get(name, needed)) < needed:
                yield (
                    f"topic {topic} has {name}={found[name]}: it may refuse the time of a record "
                    f"that the source topic took, and the partition then waits; set {name}={needed}"
                )


def time_limits(sources: Sequence[Configuration]) -> dict[str, str]:
    """Return settings by which a topic takes every time; none if the brokers do not know them."""
    known = {name for source in sources for name in source}
    return {name: str(_ANY_TIME) for name in (_BEFORE, _AFTER) if name in known}


def _compaction_warnings(topic: str, found: Configuration) -> Iterator[str]:
    policy = found.get(CLEANUP, "delete")
    if "compact" in policy:
        yield (
            f"topic {topic} has {CLEANUP}={policy}: it keeps only the last message of each key and "
            f"refuses messages without a key, for which the partition waits; set {CLEANUP}=delete"
        )


def retention(config: Configuration) -> dict[str, int]:
    """Return a topic's retention; a topic that is only compacted has no limit."""
    deletes = "delete" in config.get(CLEANUP, "delete")
    return {
        name: int(config[name]) if deletes else FOREVER for name in _RETENTION if name in config
    }


def _largest(
    limits: Callable[[Configuration], dict[str, int]], sources: Sequence[Configuration]
) -> dict[str, int]:
    found = [limits(source) for source in sources]
    names = {name for each in found for name in each}
    return {
        name: max((each[name] for each in found if name in each), key=_length)
        for name in sorted(names)
    }


def _length(limit: int) -> float:
    return math.inf if limit < 0 else limit


def _ahead(source: Configuration) -> int:
    """Return how far in the future the time of a source's record may lie, in milliseconds."""
    return 0 if _is_append_time(source) else int(source.get(_AFTER, 0))


def _is_append_time(config: Configuration) -> bool:
    """Return whether the broker's clock gives the times, whatever a message brings."""
    return config.get(_TIME_TYPE) == "LogAppendTime"
