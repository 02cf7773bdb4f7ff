"""Makes, starts and stops the parts of a scoring worker, with the Faust app."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from time import monotonic

from faust.types import TP
from prometheus_client import CollectorRegistry

from faust_oslrau.app import pace
from faust_oslrau.app.kafka.batches import Fetched
from faust_oslrau.app.kafka.emitter import Emitter
from faust_oslrau.app.kafka.security import client_arguments, producer_arguments
from faust_oslrau.app.kafka.topics import OutputTopics
from faust_oslrau.app.kafka.transactions import Producers
from faust_oslrau.app.kafka.transport import Consumer
from faust_oslrau.app.metrics import Metrics
from faust_oslrau.app.metrics.broker_contact import BrokerContact
from faust_oslrau.app.pipeline import compile_pipeline
from faust_oslrau.app.registry import OutputSchemas
from faust_oslrau.app.settings import Settings
from faust_oslrau.app.snapshots.configured import snapshot_store
from faust_oslrau.topics.formats import Translate

from .assignment import Assignment
from .chores import Chores
from .daemon import run_in_daemon
from .delivery import delivery
from .freed_memory import return_compiler
from .past_incidents import PastIncidents
from .rests import Rests
from .schema_desk import SchemaDesk

logger = logging.getLogger(__name__)

# How long a stop waits for batches in work. Brokers answer in milliseconds, and the next worker
# repeats what they do not acknowledge.
_STOP_SECONDS = 5.0
# After how many kernels to log how many are compiled: a few seconds pass in between.
_LOGGED_KERNELS = 25


class Runtime:
    """Scores the source topics of an app; the transport's `SourceListener`.

    Parameters
    ----------
    settings
        The worker's settings.
    registry
        The Prometheus registry of the metrics.
    crash
        Stops the app after an unrecoverable error.

    Attributes
    ----------
    topics
        The source topics.
    preparing
        The current step before the worker joins the group; None afterwards.
    compiled
        About the share of the kernels that are compiled; None unless they are being compiled.
    assignment
        The partitions; None before the worker joins the group.
    contact
        Records when the broker last answered.
    past_incidents
        The incidents that the anomalies topic tells of.
    acknowledged
        After a stop: whether the broker has acknowledged all outputs and commits.
    """

    def __init__(
        self,
        settings: Settings,
        registry: CollectorRegistry,
        crash: Callable[[BaseException], Awaitable[None]],
    ) -> None:
        self.settings = settings
        self.topics = frozenset(settings.source_topics)
        self.contact = BrokerContact()
        self.metrics = Metrics(registry, settings, self.contact)
        self.preparing: str | None = "starting"
        self.compiled: float | None = None
        self.assignment: Assignment | None = None
        self.acknowledged = True
        self.past_incidents = PastIncidents(settings, client_arguments(settings))
        self._crash = crash
        self._writers: dict[str, Translate] = {}  # filled before anything is written
        arguments = producer_arguments(settings)
        self._emitter = Emitter(arguments, self._writers)
        self._producers = Producers(settings.app_id, arguments, self._writers)
        self._store = snapshot_store(settings, self._producers)
        self._schemas: SchemaDesk | None = None
        self._chores: list[asyncio.Task[None]] = []
        self._handling = asyncio.Lock()
        self._rests = Rests()

    @property
    def client_rack(self) -> str | None:
        """The rack of this worker."""
        return self.settings.client_rack

    @property
    def batch_records(self) -> int:
        """The largest number of records in a batch."""
        return pace.BATCH_RECORDS

    async def start(self, consumer: Consumer) -> None:
        """Compile the kernels, wait for the broker and the topics, and connect.

        Raises
        ------
        TopicError
            A topic has the wrong configuration, or is missing and cannot be created.
        RegistryError
            The registry does not take the schemas of the outputs.
        """
        self.preparing = "loading the kernels"
        tell = self._tell_of_kernels(monotonic())
        await run_in_daemon(partial(compile_pipeline, self.settings, tell))
        return_compiler()
        self.compiled = None
        self.preparing = "waiting for the broker and the topics"
        self.contact.mark_answer()
        topics = OutputTopics(self.settings, client_arguments(self.settings))
        await topics.set_up()
        await self._emitter.start()
        self.contact.mark_answer()
        if self.settings.writes_avro:
            self.preparing = "waiting for the registry"
            schemas = OutputSchemas(self.settings, client_arguments(self.settings), self._emitter)
            asking = schemas.ask(self._writers)
            if await schemas.fill_in_kept(self._writers):
                self._chores.append(asyncio.create_task(self._guard(asking)))
            else:
                await asking
        if self.settings.uses_registry:
            arguments = client_arguments(self.settings)
            self._schemas = SchemaDesk(self.settings, self._producers, arguments)
        self.assignment = Assignment(
            self.settings,
            consumer,
            topics,
            delivery(self.settings, self._emitter, consumer, self._producers),
            self._producers,
            self._store,
            self.metrics,
            self._crash,
            self._schemas,
        )
        chores = Chores(
            self.assignment, self.settings, consumer, self.contact, self.past_incidents
        ).chores()
        self._chores += [asyncio.create_task(self._guard(chore)) for chore in chores]
        self.preparing = None
        logger.info("ready to join the group %s", self.settings.app_id)

    def assigned(self, partitions: frozenset[TP]) -> None:
        """Open exactly these partitions."""
        self._joined.assigned(partitions)

    async def revoked(self) -> None:
        """Finish the batches in work, commit and save, while the group waits."""
        await self._joined.revoked(self.settings.session_timeout)

    def resumed(self) -> None:
        """Read all partitions again from the offsets of their states."""
        self._joined.resumed()

    async def handle(self, fetched: Fetched) -> None:
        """Start to process the batches of a poll, each as soon as there is room."""
        async with self._handling:
            with self._rests.measured(fetched.batches):
                for batch in fetched.batches:
                    await self._joined.handle(batch)

    async def taken(self) -> None:
        """Return once all batches that were handed over are in work, after a rest if one is due."""
        async with self._handling:
            rest = self._rests.take()
        await asyncio.sleep(rest)

    async def stop(self) -> None:
        """Finish the batches in work and commit, in bounded time even without a broker."""
        for task in self._chores:
            task.cancel()
        if self.assignment is not None:
            self.acknowledged = await self.assignment.stop(_STOP_SECONDS)
        if self._schemas is not None:
            await self._schemas.close()
        await self.past_incidents.aclose()
        await self._emitter.stop()

    def _tell_of_kernels(self, began: float) -> Callable[[int, int], None]:
        """Return what tells of each kernel who asks, and the log of some."""

        def tell(done: int, needed: int) -> None:
            seconds = (monotonic() - began) * (needed - done) / done
            so_far = f"{done} of some {needed}, about {seconds:.0f} s to go"
            self.preparing = f"compiling the kernels, once for this version: {so_far}"
            self.compiled = done / needed
            if done % _LOGGED_KERNELS == 1:
                logger.info(self.preparing)

        return tell

    @property
    def _joined(self) -> Assignment:
        if self.assignment is None:
            raise RuntimeError("the worker has not been started")
        return self.assignment

    async def _guard(self, chore: Awaitable[None]) -> None:
        try:
            await chore
        except Exception as error:  # no failure of a chore may go unnoticed
            await self._crash(error)
