"""Sets up a worker's topics: waits for the source topics, creates or checks the others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    IncompatibleBrokerVersion,
    InvalidPartitionsError,
    KafkaConnectionError,
    KafkaError,
    TopicAlreadyExistsError,
    for_code,
)

from faust_oslrau.app.errors import TopicError
from faust_oslrau.app.settings import Settings

from .access import check_access
from .output_limits import CLEANUP, OutputLimits, time_limits
from .rights import RightsError, check, needed

if TYPE_CHECKING:  # Faust takes a second to import, which `produce` need not wait for
    from faust.types import TP

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 3.0
# A topic that was just created takes a moment to reach every broker.
_CREATION_SECONDS = 30.0
_POLL_SECONDS = 0.2
_UNREADABLE = (
    "the configuration of topic %s cannot be read: whether output topics keep and take enough is "
    "not checked, and new ones get the broker's defaults; allow DescribeConfigs (%s)"
)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that exists."""

    name: str
    partitions: int
    replicas: int


class OutputTopics:
    """Creates the output topics, and adds partitions when the source topics get more.

    Attributes
    ----------
    partitions
        The number of partitions that each output topic has at least.
    """

    def __init__(self, settings: Settings, client_arguments: Mapping[str, Any]) -> None:
        self.partitions = 0
        self._settings = settings
        self._arguments = client_arguments

    async def set_up(self) -> None:
        """Set the topics up; raises as `set_up_topics`."""
        self.partitions = await set_up_topics(self._settings, self._arguments)

    async def with_outputs(self, sources: frozenset[TP]) -> frozenset[TP]:
        """Return the sources that have output partitions; try to add those that are missing."""
        if any(tp.partition >= self.partitions for tp in sources):
            try:
                await self.set_up()
            except (TopicError, RightsError) as error:
                logger.error("partitions from %d on are not read: %s", self.partitions, error)
        return frozenset(tp for tp in sources if tp.partition < self.partitions)


async def set_up_topics(settings: Settings, client_arguments: Mapping[str, Any]) -> int:
    """Wait for the broker and the source topics, then create, extend or check the others.

    Returns the number of partitions that each of the others has at least.

    Raises
    ------
    BrokerError
        The broker refuses the credentials or the certificate, or the user lacks rights.
    TopicError
        A topic has the wrong configuration, or the broker does not create it or add partitions.
    """
    while True:
        admin = await _connect(client_arguments)
        try:
            return await _set_up(admin, settings)
        except KafkaError as error:
            if not error.retriable:
                raise
            await check_access(client_arguments)
            logger.warning("waiting for the broker: %r", error)
        finally:
            await admin.close()
        await asyncio.sleep(_RETRY_SECONDS)


async def _set_up(admin: AIOKafkaAdminClient, settings: Settings) -> int:
    sources = await _wait_for_sources(admin, settings.source_topics)
    partitions = max(source.partitions for source in sources)
    replicas = max(source.replicas for source in sources)
    configurations = [await _topic_config(admin, name) for name in settings.source_topics]
    limits = OutputLimits(configurations, settings.max_output_bytes)
    existing = await _topics(admin)
    for name in (settings.scores_topic, settings.anomalies_topic, settings.dead_letter_topic):
        if name not in existing:
            config = limits.of_new_topic()
            await create(admin, NewTopic(name, partitions, replicas, topic_configs=config))
        else:
            await _widen(admin, existing[name], partitions)
            for warning in limits.warnings(name, await _topic_config(admin, name)):
                logger.warning(warning)
    for name in filter(None, (settings.snapshots_topic, settings.schemas_topic)):
        config = {CLEANUP: "compact"} | time_limits(configurations)
        compacted = NewTopic(name, partitions, replicas, topic_configs=config)
        await _set_up_compacted(admin, compacted, existing.get(name))
    await check(admin._client, needed(settings), settings.app_id)
    return partitions


async def _set_up_compacted(
    admin: AIOKafkaAdminClient, wanted: NewTopic, existing: Topic | None
) -> None:
    """Create or check a topic of what the worker needs again, which must be compacted."""
    if existing is None:
        await create(admin, wanted)
        return
    await _widen(admin, existing, wanted.num_partitions)
    policy = (await _topic_config(admin, wanted.name)).get(CLEANUP, "compact")
    if policy != "compact":
        raise TopicError(
            f"topic {wanted.name} has {CLEANUP}={policy}, expected compact: "
            "what the worker needs again would be deleted"
        )


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
        await check(admin._client, dict.fromkeys(missing, ("Read",)))
        logger.warning("waiting for topic %s to be created", ", ".join(missing))
        await asyncio.sleep(_RETRY_SECONDS)


async def _topics(admin: AIOKafkaAdminClient) -> dict[str, Topic]:
    """Describe all topics: some brokers create a topic that a request names."""
    found = {}
    for topic in await admin.describe_topics():
        partitions = topic["partitions"]
        if partitions:
            replicas = len(partitions[0]["replicas"])
            found[topic["topic"]] = Topic(topic["topic"], len(partitions), replicas)
    return found


async def create(admin: AIOKafkaAdminClient, topic: NewTopic, *, may_exist: bool = True) -> None:
    """Create a topic and wait until the brokers know it; by default another may have created it.

    Raises
    ------
    TopicError
        The broker does not create it.
    KafkaError
        It may be tried again.
    """
    wanted = f"topic {topic.name} with {topic.num_partitions} partitions"
    if not await _has_controller(admin):
        raise TopicError(f"{wanted} is missing, and this broker creates no topics")
    try:
        answer = await admin.create_topics([topic])
    except (KafkaError, IncompatibleBrokerVersion) as error:
        if error.retriable:
            raise
        raise TopicError(f"{wanted} cannot be created: {error!r}") from error
    code, message = answer.topic_errors[0][1:3]
    error_type = for_code(code)
    if code != 0 and not (may_exist and error_type is TopicAlreadyExistsError):
        raise TopicError(f"{wanted} cannot be created: {message or error_type.__name__}")
    await _wait_until_known(admin, topic.name, topic.num_partitions)
    logger.info("%s created", wanted)


async def _widen(admin: AIOKafkaAdminClient, topic: Topic, needed: int) -> None:
    """Add missing partitions: a message goes to the partition number of its record."""
    if topic.partitions >= needed:
        return
    lack = f"topic {topic.name} has {topic.partitions} partitions, expected at least {needed}"
    if not await _has_controller(admin):
        raise TopicError(f"{lack}, and this broker adds none")
    try:
        await admin.create_partitions({topic.name: NewPartitions(needed)})
    except InvalidPartitionsError:
        logger.debug("another worker has added partitions to topic %s", topic.name)
    except (KafkaError, IncompatibleBrokerVersion) as error:
        if error.retriable:
            raise
        raise TopicError(
            f"{lack}, as many as the source topic has; none can be added: {error}"
        ) from error
    await _wait_until_known(admin, topic.name, needed)
    logger.warning("topic %s has %d partitions now, not %d", topic.name, needed, topic.partitions)


async def _has_controller(admin: AIOKafkaAdminClient) -> bool:
    """Tell whether topics can be created: the embedded broker has no controller."""
    cluster = await admin.describe_cluster()
    return cluster["controller_id"] in {broker["node_id"] for broker in cluster["brokers"]}


async def _wait_until_known(admin: AIOKafkaAdminClient, name: str, partitions: int) -> None:
    for _ in range(int(_CREATION_SECONDS / _POLL_SECONDS)):
        found = (await _topics(admin)).get(name)
        if found is not None and found.partitions >= partitions:
            return
        await asyncio.sleep(_POLL_SECONDS)
    raise TopicError(f"topic {name}: created with {partitions} partitions, no broker shows them")


async def _topic_config(admin: AIOKafkaAdminClient, name: str) -> dict[str, str]:
    """Return the topic's configuration; empty if the broker does not return it."""
    try:
        return await topic_config(admin, name)
    except KafkaError as error:
        if error.retriable:
            raise
        logger.warning(_UNREADABLE, name, error)
        return {}


async def topic_config(admin: AIOKafkaAdminClient, name: str) -> dict[str, str]:
    """Return a topic's configuration; the embedded broker has none.

    Raises
    ------
    KafkaError
        The user may not read it.
    """
    try:
        (answer,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])
    except IncompatibleBrokerVersion:
        return {}
    ((code, message, _, _, entries),) = answer.resources
    if code != 0:
        raise for_code(code)(message or "")
    return {entry[0]: entry[1] for entry in entries}
