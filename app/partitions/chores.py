"""What a worker does now and then, for ever, beside the records."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator

from aiokafka.errors import KafkaError
from faust.types import TP

from faust_oslrau.app.kafka.transport import Consumer
from faust_oslrau.app.metrics.broker_contact import BrokerContact
from faust_oslrau.app.settings import Settings

from .assignment import Assignment
from .log_changes import made_anew

logger = logging.getLogger(__name__)

# How often to look which snapshots are due.
_SNAPSHOT_SECONDS = 1.0
# How often to ask the broker how far the logs have grown, and how long to wait for an answer.
_LAG_SECONDS = 1.0
_ANSWER_SECONDS = 5.0
# How often to measure the networks, each of which costs as much as a few records.
_MEASURE_SECONDS = 1.0
# How often to look for topics that were made anew.
_TOPICS_SECONDS = 5.0


class Chores:
    """Commits, takes snapshots, measures and watches.

    Parameters
    ----------
    assignment
        The partitions to look after.
    settings
        The worker's settings.
    consumer
        Knows the broker.
    contact
        Is told when the broker answers.
    """

    def __init__(
        self, assignment: Assignment, settings: Settings, consumer: Consumer, contact: BrokerContact
    ) -> None:
        self._assignment = assignment
        self._settings = settings
        self._consumer = consumer
        self._contact = contact

    def chores(self) -> Iterator[Awaitable[None]]:
        """Yield what is to be run side by side until it is cancelled."""
        snapshots = min(_SNAPSHOT_SECONDS, self._settings.snapshot_interval)
        yield _every(self._settings.commit_interval, self._commit)
        yield _every(snapshots, self._save_snapshots)
        yield _every(_LAG_SECONDS, self._measure_lag)
        yield _every(_MEASURE_SECONDS, self._measure_networks)
        yield _every(_TOPICS_SECONDS, self._watch_topics)

    async def _commit(self) -> None:
        """Commit, and sum up what was rejected."""
        await self._assignment.commit(list(self._assignment.held.values()))
        for partition in self._assignment.held.values():
            partition.rejections.sum_up()

    async def _save_snapshots(self) -> None:
        """Take the snapshots that are due, one after the other."""
        for tp, partition in list(self._assignment.held.items()):
            if self._assignment.held.get(tp) is partition:  # else it was taken away meanwhile
                await self._assignment.save_snapshot(partition)

    async def _measure_lag(self) -> None:
        """Ask how far the logs have grown, if only to see whether the broker answers."""
        held = self._assignment.held
        offsets = {tp: partition.next_offset for tp, partition in held.items()}
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                asked = offsets or {TP(self._settings.source_topics[0], 0): 0}
                lags = await self._consumer.lags(asked)
        except (TimeoutError, KafkaError) as error:
            logger.debug("no lag this time: %r", error)
            return
        self._contact.note()
        for tp, records in lags.items():
            if tp in self._assignment.held:
                self._assignment.held[tp].note_lag(records)

    async def _measure_networks(self) -> None:
        for partition in list(self._assignment.held.values()):
            await partition.measure_network()

    async def _watch_topics(self) -> None:
        """Look for topics that were deleted and made anew."""
        for partition in await made_anew(self._consumer, self._assignment.held):
            async with partition.lock:
                self._assignment.open_anew(partition, "its topic was deleted and made anew")


async def _every(seconds: float, chore: Callable[[], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(seconds)
        await chore()
