"""Runs a demo, from the broker's start to the last answer."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from faust_oslrau.app.brokers import EmbeddedBroker
from faust_oslrau.app.errors import OslrauError
from faust_oslrau.app.kafka.clients import connected
from faust_oslrau.app.kafka.security import client_arguments
from faust_oslrau.app.settings import Settings, load_settings
from faust_oslrau.topics import KEY

from .accounting import Account
from .collector import Collector
from .feed import Message, file_messages, sensor_messages
from .feeder import Feeder
from .observer import Observer
from .sensors import FIELDS
from .summary import Summary, summarize
from .topics import create_topics, output_topics, worker_environment
from .view import View
from .worker_process import WorkerProcess

_LOOK_SECONDS = 0.25
_LOOKS_PER_MODEL = 4
# Compiling the kernels takes about a minute, a few on a slow machine; later runs use the cache.
_READY_SECONDS = 600.0
# The demo gives up the missing answers after this time without any answer.
_ANSWER_TIMEOUT_SECONDS = 10.0
_POLL_SECONDS = 0.1
# Topics accept batches of 1 MB by default; a larger message is sent in a batch of its own.
_BATCH_BYTES = 900_000


class WorkerError(OslrauError):
    """The worker ended, or did not become ready."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The options of a demo.

    Attributes
    ----------
    seconds
        How long to send; None until the end of the file.
    rate
        Records per second.
    machines
        How many machines that differ to simulate.
    has_entities
        Whether the machines are entities.
    broker
        Bootstrap servers of Kafka; None for an embedded broker.
    csv
        File to send; None for simulated machines.
    settings_file
        File of the worker's settings; None for those of the environment alone.
    """

    seconds: float | None
    rate: float
    partitions: int
    machines: int
    has_entities: bool
    broker: str | None
    csv: Path | None
    seed: int
    settings_file: Path | None


async def run_demo(plan: Plan, view: View) -> Summary:
    """Run a demo; SIGINT, SIGTERM and SIGHUP end it early.

    Raises
    ------
    OslrauError
        The broker, the worker or the file fails. The broker and the worker are stopped.
    """
    stop = asyncio.Event()
    _stop_on_signals(stop)
    with ExitStack() as stack:
        embedded = None if plan.broker else stack.enter_context(EmbeddedBroker())
        address = embedded.bootstrap_servers if embedded else ""
        environment = worker_environment(plan.broker, address, _own_settings(plan))
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="oslrau-demo-")))
        environment["OSLRAU_SNAPSHOTS"] = f"folder:{folder}"
        settings = load_settings(plan.settings_file, environment)
        feed = _feed(plan, settings)
        await create_topics(embedded, settings, plan.partitions)
        worker = WorkerProcess(
            environment, plan.settings_file, settings.web_port, folder / "worker.log"
        )
        stack.enter_context(worker)
        return await _Run(plan, settings, worker, view, stop).run(feed)


class _Run:
    """A demo whose broker, topics and worker process exist."""

    def __init__(
        self,
        plan: Plan,
        settings: Settings,
        worker: WorkerProcess,
        view: View,
        stop: asyncio.Event,
    ) -> None:
        self._plan = plan
        self._settings = settings
        self._worker = worker
        self._view = view
        self._stop = stop
        self._account = Account(plan.partitions)
        where = settings.broker if plan.broker else f"the embedded broker {settings.broker}"
        page = f"http://127.0.0.1:{settings.web_port}"
        title = f"Demo at {page}, {where}, {plan.partitions} partitions"
        self._observer = Observer(title, plan.seconds, self._account)
        arguments = client_arguments(settings)
        self._producer = AIOKafkaProducer(
            **arguments, enable_idempotence=True, max_batch_size=_BATCH_BYTES
        )
        self._consumer = AIOKafkaConsumer(
            **arguments,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            fetch_max_wait_ms=50,
        )
        self._collector = Collector(self._consumer, settings, self._account)
        self._feeder = Feeder(self._producer, settings, self._account, plan.partitions)

    async def run(self, feed: Iterator[Message]) -> Summary:
        """Stream, wait for the answers, and return the summary."""
        async with self._running(self._watch()):
            await self._wait_until_ready()
            async with (
                connected(self._producer, self._settings),
                connected(self._consumer, self._settings),
            ):
                self._collector.assign(self._plan.partitions)
                async with self._running(self._collector.run()):
                    await self._stream(feed)
                    await self._wait_for_answers()
                seconds = self._observer.elapsed
                failure = await self._stop_worker()
                # Duplicate answers may arrive late.
                await self._collector.read_to_end()
        return summarize(
            self._account,
            broker=self._settings.broker,
            topics=[self._settings.source_topics[0], *output_topics(self._settings)],
            seconds=seconds,
            fields=self._observer.fields,
            left_out=self._observer.left_out,
            nodes=self._observer.network.n_nodes,
            alarm_rate=self._settings.alarm_rate,
            worker_failure=failure,
        )

    @asynccontextmanager
    async def _running(self, call: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
        """Run a call during the context; its failure stops the streaming and is raised."""
        task = asyncio.create_task(call)
        task.add_done_callback(lambda _: self._stop.set())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _watch(self) -> None:
        """Show the situation periodically; stop the streaming if the worker has ended."""
        with self._view:
            look = 0
            while True:
                if look % _LOOKS_PER_MODEL == 0 and self._account.scored:
                    _, models = await asyncio.to_thread(self._worker.page, "model")
                    self._observer.update_models(models)
                if not self._worker.is_running:
                    self._stop.set()
                self._view.show(self._observer.look(self._collector, self._feeder))
                look += 1
                await asyncio.sleep(_LOOK_SECONDS)

    async def _wait_until_ready(self) -> None:
        deadline = monotonic() + _READY_SECONDS
        while not self._stop.is_set():
            status, page = await asyncio.to_thread(self._worker.page, "readyz")
            if status == 200:
                return
            reason = page.get("reason", "it does not answer yet")
            self._observer.phase = f"starting the worker: {reason}"
            self._observer.compiled = page.get("compiled")
            if not self._worker.is_running or monotonic() > deadline:
                raise WorkerError(
                    f"the worker did not become ready: {reason}\n{self._worker.last_lines()}"
                )
            await asyncio.sleep(_POLL_SECONDS)

    async def _stream(self, feed: Iterator[Message]) -> None:
        plan = self._plan
        self._observer.compiled = None
        self._observer.phase = f"streaming {plan.csv or 'simulated machines'}"
        self._observer.begin()
        if plan.seconds is not None:
            asyncio.get_running_loop().call_later(plan.seconds, self._stop.set)
        await self._feeder.run(feed, plan.rate, self._stop)

    async def _wait_for_answers(self) -> None:
        self._observer.phase = "waiting for the last answers"
        waiting, changed = self._account.waiting, monotonic()
        while (
            waiting and self._worker.is_running and monotonic() - changed < _ANSWER_TIMEOUT_SECONDS
        ):
            await asyncio.sleep(_POLL_SECONDS)
            if self._account.waiting != waiting:
                waiting, changed = self._account.waiting, monotonic()

    async def _stop_worker(self) -> str | None:
        """Stop the worker; if it has ended unexpectedly, return its last lines."""
        if not self._worker.is_running:
            return self._worker.last_lines()
        if not self._account.sent:  # the worker has nothing to finish
            return None
        self._observer.update_models((await asyncio.to_thread(self._worker.page, "model"))[1])
        self._observer.phase = "stopping the worker"
        await asyncio.to_thread(self._worker.stop)
        return None


def _own_settings(plan: Plan) -> dict[str, str]:
    """Return the settings of the model that suit the messages."""
    if plan.csv is not None:
        return {}
    return {"FEATURES": ",".join(FIELDS), "ENTITY": "key" if plan.has_entities else "none"}


def _feed(plan: Plan, settings: Settings) -> Iterator[Message]:
    if plan.csv is not None:
        key = None if settings.entity == KEY else settings.entity
        return file_messages(plan.csv, plan.partitions, key)
    return sensor_messages(plan.partitions, plan.seed, plan.machines)


def _stop_on_signals(stop: asyncio.Event) -> None:
    """Let the first signal end the demo gracefully, and a second one immediately."""
    loop = asyncio.get_running_loop()
    # A closed terminal sends SIGHUP, and its shell may send another one, which changes nothing.
    loop.add_signal_handler(signal.SIGHUP, stop.set)
    numbers = (signal.SIGINT, signal.SIGTERM)

    def request_stop() -> None:
        stop.set()
        for number in numbers:
            loop.remove_signal_handler(number)

    for number in numbers:
        loop.add_signal_handler(number, request_stop)
