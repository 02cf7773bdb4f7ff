"""The scoring worker: a Faust app of its own, or an addition to a user's app."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import threading
from typing import Any

import faust
from faust.app.base import BootStrategy
from faust.tables import TableManager
from prometheus_client import CollectorRegistry, disable_created_metrics

from . import pace
from .errors import OslrauError
from .kafka.batches import BatchSchema
from .kafka.rebalances import RebalanceSensor
from .kafka.security import faust_credentials
from .kafka.transport import Transport
from .logs import set_up_logging
from .pages.server import BoundedWeb
from .pages.web import add_pages
from .partitions.freed_memory import share_one_heap
from .partitions.runtime import Runtime
from .pipeline import initial_model
from .registry import check_format
from .settings import Settings, secrets

logger = logging.getLogger(__name__)

# Polls between Faust's fetcher and the agent, which starts work on their batches at once.
_BUFFERED_POLLS = 1
# Records that are unpacked at a time: those of all partitions of a backlog, small objects between
# others that stay, held 4 MB a partition for ever.
_POLLED_RECORDS = 16_384
# A worker creates and frees tens of thousands of records, which form no reference cycles. With
# Python's threshold of 700 allocations the collector took an eighth or more of the CPU time.
_COLLECT_AFTER = 100_000
# A stop that takes longer is waiting for a dead broker. The next worker repeats what the broker
# has not acknowledged.
_MAX_STOP_SECONDS = 20.0
_EXIT_NO_BROKER = 3


class _NoProducer(BootStrategy):
    """Starts no Faust producer: the worker's own producers send the scores."""

    enable_kafka_producer = False


class _NoTables(TableManager):
    """Starts at once: Faust waits a second for tables, and a worker has none."""

    logger = logging.getLogger("faust")

    async def on_start(self) -> None:
        """Let the worker join the group."""
        await self._update_channels()
        await self.recovery.start()


class ScoringApp(faust.App):
    """A Faust app without the parts that scoring does not need."""

    logger = logging.getLogger("faust")

    BootStrategy = _NoProducer

    def _new_web(self) -> BoundedWeb:
        return BoundedWeb(self)

    async def on_first_start(self) -> None:
        """Create no folders: the app stores nothing in files."""

    async def crash(self, reason: BaseException) -> None:
        """Stop the app. Faust logs the traceback, which says nothing about an `OslrauError`."""
        if isinstance(reason, OslrauError):
            self.crash_reason = reason
            self._crashed.set()  # ends `wait_until_stopped`; the app's services stop in order
        else:
            await super().crash(reason)


def create_app(settings: Settings) -> faust.App:
    """Return the Faust app of a worker."""
    app = _plain_app(settings)
    attach(app, settings)
    return app


def _plain_app(settings: Settings) -> faust.App:
    return ScoringApp(
        settings.app_id,
        broker=[f"aiokafka://{server}" for server in settings.broker.split(",")],
        broker_credentials=faust_credentials(settings.security),
        broker_client_id=settings.app_id,
        broker_session_timeout=settings.session_timeout,
        # Less than a third of the session timeout, as Kafka recommends.
        broker_heartbeat_interval=min(3.0, settings.session_timeout / 4),
        broker_request_timeout=max(90.0, settings.session_timeout),
        consumer_group_instance_id=settings.group_instance_id,
        broker_max_poll_records=_POLLED_RECORDS,
        consumer_metadata_max_age_ms=int(1000 * pace.METADATA_SECONDS),
        stream_wait_empty=False,
        topic_allow_declare=False,
        topic_disable_leader=True,
        table_standby_replicas=0,
        TableManager=_NoTables,
        web_bind=settings.web_host,
        web_port=settings.web_port,
        web_router_enabled=False,
        web_tables_enabled=False,
    )


def attach(app: faust.App, settings: Settings) -> Runtime:
    """Add scoring, metrics and the pages to a user's own Faust app, before the app starts.

    The app uses its own broker, consumer group and web server. The settings must name the same
    broker, and the app's id as `app_id`.
    """
    check_format(settings)
    if settings.initial_model is not None:
        initial_model(settings)  # refuses to start, rather than fail with the first partition
    runtime = Runtime(settings, CollectorRegistry(), app.crash)
    app.transport = Transport(app.conf.broker_consumer, app, runtime)
    topic = app.topic(*settings.source_topics, schema=BatchSchema(), acks=False)
    topic.maxsize = _BUFFERED_POLLS  # Faust ignores the argument of this name

    async def score(polls: Any) -> None:
        async for fetched in polls:
            await runtime.handle(fetched)

    async def stop(*_: Any, **__: Any) -> None:
        await runtime.stop()

    app.agent(topic, name="oslrau-score")(score)
    app.on_before_shutdown.connect(stop)
    app.sensors.add(RebalanceSensor(runtime.metrics.worker.rebalances))
    add_pages(app, runtime)
    return runtime


def run_worker(settings: Settings) -> int:
    """Run a worker until SIGTERM or SIGINT, and return the exit code.

    It is 0, or 3 if no broker acknowledged the last records. A stop takes bounded time; the next
    worker repeats what no broker acknowledged.

    Raises
    ------
    OslrauError
        A setting is invalid, the broker refuses the worker, or a topic is missing or has the wrong
        configuration.
    """
    set_up_logging(settings.log_level, secrets(settings))
    disable_created_metrics()  # type: ignore[no-untyped-call]  # would double the number of series
    share_one_heap()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, *gc.get_threshold()[1:])
    stop_timeout = threading.Timer(_MAX_STOP_SECONDS, _exit_now)
    stop_timeout.daemon = True
    try:
        return asyncio.run(_run(settings, stop_timeout))
    finally:
        stop_timeout.cancel()


async def _run(settings: Settings, stop_timeout: threading.Timer) -> int:
    app = _plain_app(settings)
    runtime = attach(app, settings)
    stop_requested = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop_requested.set)
    starting = asyncio.create_task(app.start())
    ends = [
        asyncio.create_task(stop_requested.wait()),
        asyncio.create_task(app.wait_until_stopped()),
    ]
    try:
        await asyncio.wait([starting, *ends], return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()  # raises the error of a failed start
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        logger.info("stopping")
        stop_timeout.start()
        starting.cancel()
        await app.stop()
    if app.crash_reason is not None:
        raise app.crash_reason
    return 0 if runtime.acknowledged else _EXIT_NO_BROKER


def _exit_now() -> None:
    logger.error(
        "no broker answers, exiting without leaving the group; no acknowledged record is lost"
    )
    os._exit(_EXIT_NO_BROKER)
