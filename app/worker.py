"""The scoring worker: a Faust app of its own, or a part of a user's."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import signal
import threading
from typing import Any

import faust
from faust.app.base import BootStrategy
from prometheus_client import CollectorRegistry, disable_created_metrics

from .errors import SettingsError
from .kafka.batches import BatchSchema
from .kafka.rebalances import RebalanceSensor
from .kafka.security import faust_credentials
from .kafka.transport import Transport
from .logs import set_up_logging
from .pages.web import add_pages
from .partitions.runtime import Runtime
from .settings import Settings, secrets

logger = logging.getLogger(__name__)

# Batches between Faust's fetcher and the agent. Enough that the agent never runs dry; each holds
# at most one fetch of one partition, about 1 MiB, so that memory stays bounded.
_BUFFERED_BATCHES = 16
# Records come and go by the ten thousand and form no cycles. At Python's threshold of 700 more than
# before, the collector looked through them again and again, for an eighth or more of all cycles.
_COLLECT_AFTER = 100_000
# A stop that takes longer hangs on a dead broker; all that is not acknowledged will be done again.
_LONGEST_STOP_SECONDS = 20.0
_EXIT_NO_BROKER = 3
# New partitions of a source topic are found after at most so long.
_METADATA_MILLISECONDS = 30_000


class _NoProducer(BootStrategy):
    """Starts no producer of Faust's: scores leave by another way."""

    enable_kafka_producer = False


class ScoringApp(faust.App):
    """A Faust app without the parts that scoring has no use for."""

    logger = logging.getLogger("faust")

    BootStrategy = _NoProducer

    async def on_first_start(self) -> None:
        """Make no folders: nothing is kept in files."""


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
        # Kafka's advice: three heartbeats may get lost.
        broker_heartbeat_interval=min(3.0, settings.session_timeout / 4),
        broker_request_timeout=max(90.0, settings.session_timeout),
        consumer_metadata_max_age_ms=_METADATA_MILLISECONDS,
        stream_wait_empty=False,
        topic_allow_declare=False,
        topic_disable_leader=True,
        table_standby_replicas=0,
        web_bind=settings.web_host,
        web_port=settings.web_port,
        web_router_enabled=False,
        web_tables_enabled=False,
    )


def attach(app: faust.App, settings: Settings) -> Runtime:
    """Let a user's own Faust app score, with pages and all; call it before the app starts.

    The app brings its own broker, group and web server; of the settings it needs the same broker
    and, as `app_id`, its id.
    """
    runtime = Runtime(settings, CollectorRegistry(), app.crash)
    app.transport = Transport(app.conf.broker_consumer, app, runtime)
    topic = app.topic(*settings.source_topics, schema=BatchSchema(), acks=False)
    topic.maxsize = _BUFFERED_BATCHES  # Faust drops the argument of this name

    async def score(batches: Any) -> None:
        async for batch in batches:
            await runtime.handle(batch)

    async def stop(*_: Any, **__: Any) -> None:
        await runtime.stop()

    app.agent(topic, name="oslrau-score")(score)
    app.on_before_shutdown.connect(stop)
    app.sensors.add(RebalanceSensor(runtime.metrics.worker.rebalances))
    add_pages(app, runtime)
    return runtime


def run_worker(settings: Settings) -> int:
    """Run a worker until SIGTERM or SIGINT, and return 0 or, where no broker answered then, 3.

    A stop takes bounded time; what no broker acknowledged is done again by the next worker.

    Raises
    ------
    OslrauError
        The settings, the broker or the topics do not fit.
    """
    set_up_logging(settings.log_level, settings.log_format, secrets(settings))
    disable_created_metrics()  # type: ignore[no-untyped-call]  # they would double the series
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, *gc.get_threshold()[1:])
    patience = threading.Timer(_LONGEST_STOP_SECONDS, _give_up)
    patience.daemon = True
    try:
        return asyncio.run(_run(settings, patience))
    finally:
        patience.cancel()


async def _run(settings: Settings, patience: threading.Timer) -> int:
    app = _plain_app(settings)
    runtime = attach(app, settings)
    stop_asked = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop_asked.set)
    starting = asyncio.create_task(app.start())
    ends = [asyncio.create_task(stop_asked.wait()), asyncio.create_task(app.wait_until_stopped())]
    try:
        await asyncio.wait([starting, *ends], return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            _check_start(starting, settings)
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        logger.info("stopping")
        patience.start()
        starting.cancel()
        await app.stop()
    if app.crash_reason is not None:
        raise app.crash_reason
    return 0 if runtime.acknowledged else _EXIT_NO_BROKER


def _check_start(starting: asyncio.Task[None], settings: Settings) -> None:
    """Raise what went wrong."""
    try:
        starting.result()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            address = f"{settings.web_host}:{settings.web_port}"
            taken = f"setting web_port: expected a free port, {address} is taken"
            raise SettingsError(taken) from None
        raise


def _give_up() -> None:
    logger.error("no broker answers, ending without a goodbye; nothing acknowledged is lost")
    os._exit(_EXIT_NO_BROKER)
