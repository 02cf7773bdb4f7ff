"""Reads scores, anomalies, incidents and dead letters, and adds them to the account."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson
from aiokafka import AIOKafkaConsumer, TopicPartition

from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import KafkaRecord

from .accounting import Account, Blamed, Place
from .incidents import DemoIncident

_POLL_MILLISECONDS = 200
_POLL_RECORDS = 2000
_RECENT_ALARMS = 20


class Alarm(NamedTuple):
    """An anomaly message; `blamed` pairs fields with their nats, the most blamed first."""

    place: Place
    key: str
    log_likelihood: float
    blamed: list[tuple[str, float]]


class Collector:
    """Reads the worker's output topics from their beginning.

    Attributes
    ----------
    alarms
        The last anomalies, oldest first.
    alarms_by_key
        The number of anomalies of each key.
    log_likelihoods
        The log-likelihoods since the list was last cleared.
    """

    def __init__(self, consumer: AIOKafkaConsumer, settings: Settings, account: Account) -> None:
        self.alarms: deque[Alarm] = deque(maxlen=_RECENT_ALARMS)
        self.alarms_by_key: Counter[str] = Counter()
        self.log_likelihoods: list[float] = []
        self._consumer = consumer
        self._account = account
        self._handlers = {
            settings.scores_topic: self._add_score,
            settings.anomalies_topic: self._add_anomaly,
            settings.dead_letter_topic: self._add_dead_letter,
        }

    def assign(self, partitions: int) -> None:
        """Read the partitions 0 to `partitions - 1` of each topic."""
        self._consumer.assign(
            [TopicPartition(topic, p) for topic in self._handlers for p in range(partitions)]
        )

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            await self._read()
            await asyncio.sleep(0)  # lets other tasks run while there are always records

    async def read_to_end(self) -> None:
        """Read to the current ends of the topics."""
        ends = await self._consumer.end_offsets(list(self._consumer.assignment()))
        while any([await self._consumer.position(tp) < end for tp, end in ends.items()]):
            await self._read()

    async def _read(self) -> None:
        fetched: dict[TopicPartition, list[Any]] = await self._consumer.getmany(
            timeout_ms=_POLL_MILLISECONDS, max_records=_POLL_RECORDS
        )
        for tp, records in fetched.items():
            self._add(tp.topic, records)

    def _add(self, topic: str, records: Iterable[KafkaRecord]) -> None:
        handle = self._handlers[topic]
        for record in records:
            handle(record)

    def _add_score(self, record: KafkaRecord) -> None:
        score = orjson.loads(record.value or b"")
        self._account.add_score(_place(score), score["is_anomaly"])
        if score["log_likelihood"] is not None:
            self.log_likelihoods.append(score["log_likelihood"])

    def _add_anomaly(self, record: KafkaRecord) -> None:
        anomaly = orjson.loads(record.value or b"")
        if anomaly.get("event") == "incident":
            self._account.add_incident(DemoIncident.of_event(anomaly))
        if "event" in anomaly:
            return
        items = anomaly["contributions"]
        most = Blamed(*(items[0][name] for name in Blamed._fields)) if items else None
        self._account.add_anomaly(_place(anomaly), most)
        blamed = [(item["field"], item["nats"]) for item in items]
        key = (record.key or b"").decode(errors="replace")
        if key:
            self.alarms_by_key[key] += 1
        self.alarms.append(Alarm(_place(anomaly), key, anomaly["log_likelihood"], blamed))

    def _add_dead_letter(self, record: KafkaRecord) -> None:
        headers = dict(record.headers)
        place = Place(int(headers["oslrau-partition"]), int(headers["oslrau-offset"]))
        self._account.add_dead_letter(
            place, headers["oslrau-reason"].decode(), headers["oslrau-detail"].decode()
        )


def _place(score: dict[str, Any]) -> Place:
    return Place(score["partition"], score["offset"])
