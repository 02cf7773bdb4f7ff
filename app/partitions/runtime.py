"""The parts of a scoring worker, started, run and stopped with a Faust app."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from faust.types import TP
from prometheus_client import CollectorRegistry

from faust_oslrau.app.kafka.batches import RecordBatch
from faust_oslrau.app.kafka.emitter import Emitter
from faust_oslrau.app.kafka.security import client_arguments
from faust_oslrau.app.kafka.topics import OutputTopics
from faust_oslrau.app.kafka.transactions import Producers
from faust_oslrau.app.kafka.transport import Consumer
from faust_oslrau.app.metrics import Metrics
from faust_oslrau.app.metrics.broker_contact import BrokerContact
from faust_oslrau.app.settings import Settings
from faust_oslrau.app.snapshots.configured import snapshot_store
from faust_oslrau.learner import compile_kernels

from .assignment import Assignment
from .chores import Chores
from .delivery import delivery

logger = logging.getLogger(__name__)

# What the end of the work may take when the app stops: brokers answer in milliseconds, and
# whatever they do not acknowledge is done again by the next worker.
_STOP_SECONDS = 5.0


class Runtime:
    """Scores the source topics of an app; the transport's `SourceListener`.

    Parameters
    ----------
    settings
        The worker's settings.
    registry
        Where the metrics are exposed.
    crash
        Ends the app after an error that nothing can be done about.

    Attributes
    ----------
    preparing
        What has to be done before the group is joined, None when all of it is.
    assignment
        The partitions, None before the group is joined.
    contact
        Knows for how long the broker has not answered.
    acknowledged
        After the end: whether the broker has acknowledged all work.
    """

    def __init__(
        self,
        settings: Settings,
        registry: CollectorRegistry,
        crash: Callable[[BaseException], Awaitable[None]],
    ) -> None:
        self.settings = settings
        self.contact = BrokerContact()
        self.metrics = Metrics(registry, settings, self.contact)
        self.preparing: str | None = "starting"
        self.assignment: Assignment | None = None
        self.acknowledged = True
        self._crash = crash
        self._emitter = Emitter(client_arguments(settings))
        self._producers = Producers(settings.app_id, client_arguments(settings))
        self._chores: list[asyncio.Task[None]] = []

    @property
    def topics(self) -> frozenset[str]:
        """The source topics."""
        return frozenset(self.settings.source_topics)

    @property
    def batch_records(self) -> int:
        """Most records of a batch."""
        return self.settings.max_poll_records

    async def start(self, consumer: Consumer) -> None:
        """Compile, wait for the broker and the topics, connect.

        Raises
        ------
        TopicError
            A topic does not fit, or is missing and cannot be created.
        """
        self.preparing = "compiling the learner's kernels"
        logger.info("compiling the learner's kernels, or loading them from their cache")
        await asyncio.to_thread(compile_kernels)
        self.preparing = "waiting for the broker and the topics"
        self.contact.mark_answer()
        topics = OutputTopics(self.settings, client_arguments(self.settings))
        await topics.set_up()
        await self._emitter.start()
        self.contact.mark_answer()
        self.assignment = Assignment(
            self.settings,
            consumer,
            topics,
            delivery(self.settings, self._emitter, consumer, self._producers),
            self._producers,
            snapshot_store(self.settings, self._producers),
            self.metrics,
            self._crash,
        )
        own = Chores(self.assignment, self.settings, consumer, self.contact)
        self._chores = [asyncio.create_task(self._guard(each)) for each in own.chores()]
        self.preparing = None
        logger.info("ready to join the group %s", self.settings.app_id)

    def assigned(self, partitions: frozenset[TP]) -> None:
        """Take over these partitions and no others."""
        self._joined.assigned(partitions)

    async def revoked(self) -> None:
        """Bring the work on all partitions to an end, while the group still waits for it."""
        await self._joined.revoked(self.settings.session_timeout)

    def resumed(self) -> None:
        """Read all partitions again from where their state is."""
        self._joined.resumed()

    async def handle(self, batch: RecordBatch) -> None:
        """Take a batch into work."""
        await self._joined.handle(batch)

    async def stop(self) -> None:
        """End the work and commit, in bounded time even without a broker."""
        for task in self._chores:
            task.cancel()
        if self.assignment is not None:
            self.acknowledged = await self.assignment.stop(_STOP_SECONDS)
        await self._emitter.stop()

    @property
    def _joined(self) -> Assignment:
        if self.assignment is None:
            raise RuntimeError("the worker has not been started")
        return self.assignment

    async def _guard(self, call: Awaitable[None]) -> None:
        try:
            await call
        except Exception as error:  # nothing of this may end unseen
            await self._crash(error)
