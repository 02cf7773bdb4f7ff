"""The topics that a worker needs: the source topics waited for, the others created or checked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    IncompatibleBrokerVersion,
    KafkaConnectionError,
    KafkaError,
    TopicAlreadyExistsError,
    for_code,
)

from .access import check_access
from .errors import TopicError
from .settings import Settings

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 3.0
# A topic that was just created takes a moment to reach every broker.
_CREATION_SECONDS = 30.0
_POLL_SECONDS = 0.2
_MAX_BYTES = "max.message.bytes"
_RETENTION = "retention.ms"
_CLEANUP = "cleanup.policy"


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that exists."""

    name: str
    partitions: int
    replicas: int


async def set_up_topics(settings: Settings, client_arguments: Mapping[str, Any]) -> None:
    """Wait for the broker and the source topics, then create the others or check them.

    Raises
    ------
    BrokerError
        The broker refuses us.
    TopicError
        Where a topic has too few partitions, or is missing and the broker does not create it.
    """
    while True:
        admin = await _connect(client_arguments)
        try:
            await _set_up(admin, settings)
            return
        except KafkaError as error:
            if not error.retriable:
                raise
            logger.warning("waiting for the brokers: %r", error)
        finally:
            await admin.close()
        await asyncio.sleep(_RETRY_SECONDS)


async def _set_up(admin: AIOKafkaAdminClient, settings: Settings) -> None:
    sources = await _wait_for_sources(admin, settings.source_topics)
    partitions = max(source.partitions for source in sources)
    replicas = max(source.replicas for source in sources)
    retention = await _retention(admin, settings.source_topics)
    existing = await _topics(admin)
    for name, config in _output_topics(settings).items():
        if name not in existing:
            config = config | retention
            await _create(admin, NewTopic(name, partitions, replicas, topic_configs=config))
        else:
            _check_partitions(existing[name], partitions)
            await _check_size(admin, name, config)
    if settings.snapshots == "topic":
        snapshots = NewTopic(
            settings.snapshots_topic, partitions, replicas, topic_configs={_CLEANUP: "compact"}
        )
        await _set_up_snapshots(admin, snapshots, existing.get(settings.snapshots_topic))


async def _set_up_snapshots(
    admin: AIOKafkaAdminClient, wanted: NewTopic, existing: Topic | None
) -> None:
    """Create or check the snapshots' topic, which must keep the last value of each key."""
    if existing is None:
        await _create(admin, wanted)
        return
    _check_partitions(existing, wanted.num_partitions)
    policy = (await _topic_config(admin, wanted.name)).get(_CLEANUP, "compact")
    if policy != "compact":
        raise TopicError(
            f"topic {wanted.name} has {_CLEANUP}={policy}, expected compact: "
            "snapshots would be deleted"
        )


def _output_topics(settings: Settings) -> dict[str, dict[str, str]]:
    """Return the topics that the worker writes to, and how to configure them."""
    size = {_MAX_BYTES: str(settings.max_output_bytes)}
    return {
        settings.scores_topic: {},
        settings.anomalies_topic: size,
        settings.dead_letter_topic: size,
    }


async def _connect(client_arguments: Mapping[str, Any]) -> AIOKafkaAdminClient:
    while True:
        admin = AIOKafkaAdminClient(**client_arguments)
        try:
            await admin.start()
            return admin
        except KafkaConnectionError as error:
            await check_access(client_arguments)
            logger.warning("waiting for the broker: %s", error)
        await admin.close()
        await asyncio.sleep(_RETRY_SECONDS)


async def _wait_for_sources(admin: AIOKafkaAdminClient, names: tuple[str, ...]) -> list[Topic]:
    while True:
        existing = await _topics(admin)
        missing = [name for name in names if name not in existing]
        if not missing:
            return [existing[name] for name in names]
        logger.warning("waiting for topic %s to be created", ", ".join(missing))
        await asyncio.sleep(_RETRY_SECONDS)


async def _topics(admin: AIOKafkaAdminClient) -> dict[str, Topic]:
    """Return all topics: asking for one by name would make some brokers create it."""
    found = {}
    for topic in await admin.describe_topics():
        partitions = topic["partitions"]
        if partitions:
            replicas = len(partitions[0]["replicas"])
            found[topic["topic"]] = Topic(topic["topic"], len(partitions), replicas)
    return found


async def _create(admin: AIOKafkaAdminClient, topic: NewTopic) -> None:
    wanted = f"topic {topic.name} with {topic.num_partitions} partitions"
    cluster = await admin.describe_cluster()
    # The embedded broker names a controller that there is not: aiokafka would fail.
    if cluster["controller_id"] not in {broker["node_id"] for broker in cluster["brokers"]}:
        raise TopicError(f"{wanted} is missing, and this broker creates no topics")
    try:
        answer = await admin.create_topics([topic])
    except (KafkaError, IncompatibleBrokerVersion) as error:
        if error.retriable:
            raise
        raise TopicError(f"{wanted} cannot be created: {error!r}") from error
    code, message = answer.topic_errors[0][1:3]
    error_type = for_code(code)
    if code != 0 and error_type is not TopicAlreadyExistsError:
        raise TopicError(f"{wanted} cannot be created: {message or error_type.__name__}")
    await _wait_until_known(admin, topic)
    logger.info("%s created", wanted)


async def _wait_until_known(admin: AIOKafkaAdminClient, topic: NewTopic) -> None:
    for _ in range(int(_CREATION_SECONDS / _POLL_SECONDS)):
        existing = await _topics(admin)
        if topic.name in existing:
            _check_partitions(existing[topic.name], topic.num_partitions)
            return
        await asyncio.sleep(_POLL_SECONDS)
    raise TopicError(f"topic {topic.name} was created but no broker knows it")


def _check_partitions(topic: Topic, needed: int) -> None:
    if topic.partitions < needed:
        raise TopicError(
            f"topic {topic.name} has {topic.partitions} partitions, expected at least {needed}, "
            "as many as the source topic: messages keep their partition number"
        )


async def _retention(admin: AIOKafkaAdminClient, sources: tuple[str, ...]) -> dict[str, str]:
    """Return the retention of the source that is kept longest.

    A score has its record's timestamp: kept for a shorter time, it might be gone at once.
    """
    times = [(await _topic_config(admin, source)).get(_RETENTION) for source in sources]
    known = [int(time) for time in times if time is not None]
    longest = -1 if -1 in known else max(known, default=None)  # -1 is for ever
    return {} if longest is None else {_RETENTION: str(longest)}


async def _check_size(admin: AIOKafkaAdminClient, name: str, config: Mapping[str, str]) -> None:
    """Warn where an existing topic takes smaller messages than may come."""
    needed = int(config.get(_MAX_BYTES, 0))
    taken = int((await _topic_config(admin, name)).get(_MAX_BYTES, needed))
    if taken < needed:
        logger.warning(
            "topic %s takes messages of %d bytes, up to %d may come: what does not fit goes "
            "as headers alone; max.message.bytes=%d would keep it",
            *(name, taken, needed, needed),
        )


async def _topic_config(admin: AIOKafkaAdminClient, name: str) -> dict[str, str]:
    """Return the topic's settings, none where the broker does not say."""
    try:
        (answer,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])
    except (KafkaError, IncompatibleBrokerVersion):
        return {}
    return {entry[0]: entry[1] for resource in answer.resources for entry in resource[4]}
