"""A worker's periodic tasks: commits, snapshots, measurements, and what changes in the cluster."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator

from aiokafka.errors import KafkaError
from faust.types import TP

from faust_oslrau.app import pace
from faust_oslrau.app.kafka.transport import Consumer
from faust_oslrau.app.metrics.broker_contact import BrokerContact
from faust_oslrau.app.settings import Settings

from .activity import Activity
from .assignment import Assignment
from .freed_memory import return_freed_memory
from .log_changes import find_recreated
from .neighbours import DifferingFields, SharedEntities
from .past_incidents import PastIncidents

logger = logging.getLogger(__name__)

# How often to check which snapshots are due.
_SNAPSHOT_SECONDS = 1.0
# How often to ask the broker for the logs' end offsets, and how long to wait for an answer.
_LAG_SECONDS = 1.0
_ANSWER_SECONDS = 5.0
# How often to measure the networks; one measurement costs as much as a few records.
_MEASURE_SECONDS = 1.0
# How often to look for opened partitions whose past incidents are not known yet.
_PAST_SECONDS = 1.0
# How often to look for recreated topics.
_TOPICS_SECONDS = 5.0
# How often to look for members of the group that are no workers.
_MEMBERS_SECONDS = 5.0
# How often to log what was done.
_ACTIVITY_SECONDS = 60.0
# How often to return freed memory to the operating system.
_MEMORY_SECONDS = 10.0
# How often to look for entities with records in several partitions.
_ENTITIES_SECONDS = 10.0


class Chores:
    """The periodic tasks of a worker.

    Parameters
    ----------
    assignment
        The worker's partitions.
    settings
        The worker's settings.
    consumer
        Asks the broker for end offsets, topic ids and the members of the group.
    contact
        Records when the broker answers.
    past
        Reads the past incidents of partitions.
    """

    def __init__(
        self,
        assignment: Assignment,
        settings: Settings,
        consumer: Consumer,
        contact: BrokerContact,
        past: PastIncidents,
    ) -> None:
        self._assignment = assignment
        self._settings = settings
        self._consumer = consumer
        self._contact = contact
        self._past = past
        self._foreign_members: set[str] = set()
        self._differing_fields = DifferingFields()
        self._shared_entities = SharedEntities()
        self._activity = Activity()

    def chores(self) -> Iterator[Awaitable[None]]:
        """Yield the periodic tasks, to be run concurrently until they are cancelled."""
        snapshots = min(_SNAPSHOT_SECONDS, self._settings.snapshot_interval)
        yield _every(pace.COMMIT_SECONDS, self._commit)
        yield _every(snapshots, self._save_snapshots)
        yield _every(_LAG_SECONDS, self._measure_lag)
        yield _every(_MEASURE_SECONDS, self._measure_networks)
        if self._settings.follows_incidents:
            yield _every(_PAST_SECONDS, self._read_past_incidents)
        yield _every(_TOPICS_SECONDS, self._watch_topics)
        yield _every(_ACTIVITY_SECONDS, self._tell_of_activity)
        yield _every(_MEMBERS_SECONDS, self._watch_members)
        yield _every(_MEMORY_SECONDS, self._return_memory)
        if self._settings.entity is not None:
            yield _every(_ENTITIES_SECONDS, self._watch_entities)

    async def _commit(self) -> None:
        """Commit, and summarize the rejected records in the log."""
        await self._assignment.commit(list(self._assignment.held.values()))
        for partition in self._assignment.held.values():
            partition.rejections.summarize()

    async def _save_snapshots(self) -> None:
        """Save the snapshots that are due, one after the other."""
        for tp, partition in list(self._assignment.held.items()):
            if self._assignment.held.get(tp) is partition:  # else it was revoked in the meantime
                await self._assignment.save_snapshot(partition)

    async def _measure_lag(self) -> None:
        """Measure the lags; without partitions, only check whether the broker answers."""
        held = self._assignment.held
        offsets = {tp: partition.next_offset for tp, partition in held.items()}
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                lags = await self._consumer.lags(
                    offsets or {TP(self._settings.source_topics[0], 0): 0}
                )
        except (TimeoutError, KafkaError) as error:
            logger.debug("could not measure the lag: %r", error)
            return
        self._contact.mark_answer()
        self._assignment.set_lags(lags)

    async def _return_memory(self) -> None:
        await asyncio.to_thread(return_freed_memory)

    async def _measure_networks(self) -> None:
        for partition in list(self._assignment.held.values()):
            await partition.measure_network()

    async def _read_past_incidents(self) -> None:
        """Read the past incidents of opened partitions, one partition after the other."""
        for tp, partition in list(self._assignment.held.items()):
            history = partition.metrics.history
            if history.knows_past_incidents:
                continue
            events = await self._past.read(tp)
            async with partition.lock:  # then what is open after the last record is known
                history.add_past_incidents(events)
                if partition.next_offset >= partition.emit_from:  # else some may open again
                    history.incidents.close_others(partition.metrics.open, time.time())

    async def _tell_of_activity(self) -> None:
        self._activity.tell([held.metrics for held in self._assignment.held.values()])
        self._differing_fields.look(self._assignment.held)

    async def _watch_topics(self) -> None:
        """Reopen the partitions of topics that were deleted and recreated."""
        for partition in await find_recreated(self._consumer, self._assignment.held):
            async with partition.lock:
                self._assignment.reopen(partition, "its topic was deleted and recreated")

    async def _watch_members(self) -> None:
        """Warn once of each member of the group that is no worker."""
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                found = await self._consumer.foreign_members()
        except (TimeoutError, KafkaError) as error:
            logger.debug("could not describe the group: %r", error)
            return
        for member in found.keys() - self._foreign_members:
            logger.warning(
                "group %s has a member that is no worker, %s: its partitions get no scores; "
                "stop it, or give it another group",
                *(self._settings.app_id, found[member]),
            )
        self._foreign_members = set(found)

    async def _watch_entities(self) -> None:
        """Warn of entities with records in several partitions."""
        await self._shared_entities.look(dict(self._assignment.held))


async def _every(seconds: float, chore: Callable[[], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(seconds)
        await chore()
