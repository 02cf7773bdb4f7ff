"""The settings and topics of a demo."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping

from faust_oslrau.app.brokers import EmbeddedBroker
from faust_oslrau.app.brokers.ports import free_ports
from faust_oslrau.app.kafka.clients import connected_admin
from faust_oslrau.app.offline.produce import create_topic
from faust_oslrau.app.settings import Settings

_SECURITY = ("OSLRAU_SECURITY_", "OSLRAU_SASL_")


def worker_environment(
    broker: str | None, embedded: str, of_model: Mapping[str, str]
) -> dict[str, str]:
    """Return this process's environment with the settings of the demo's worker.

    On the user's `broker` the topics and the group have new names; without one, `embedded` is the
    address. `of_model` are further settings.
    """
    prefix = f"demo-{uuid.uuid4().hex[:6]}-" if broker else ""
    environment = dict(os.environ) if broker else _without_security(os.environ)
    own = {
        "BROKER": broker or embedded,
        "APP_ID": f"{prefix}faust-oslrau",
        "SOURCE_TOPICS": f"{prefix}features",
        "SCORES_TOPIC": f"{prefix}scores",
        "ANOMALIES_TOPIC": f"{prefix}anomalies",
        "DEAD_LETTER_TOPIC": f"{prefix}features-dead-letters",
        "FORMAT": "json",
        "SCORES_FORMAT": "json",
        "START": "earliest",
        "WEB_HOST": "127.0.0.1",
        "WEB_PORT": str(free_ports(1)[0]),
    }
    own.update(of_model)
    return environment | {f"OSLRAU_{name}": value for name, value in own.items()}


def output_topics(settings: Settings) -> tuple[str, str, str]:
    """Return the worker's output topics."""
    return (settings.scores_topic, settings.anomalies_topic, settings.dead_letter_topic)


async def create_topics(
    embedded: EmbeddedBroker | None, settings: Settings, partitions: int
) -> None:
    """Create the source topic and, on the embedded broker, the output topics.

    Raises
    ------
    BrokerError
        The broker is unavailable.
    TopicError
        The broker does not create a topic.
    """
    source = settings.source_topics[0]
    if embedded is not None:
        for topic in (source, *output_topics(settings)):
            embedded.create_topic(topic, partitions)
        return
    async with connected_admin(settings) as admin:
        await create_topic(admin, source, partitions)


def _without_security(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without security settings, which the embedded broker lacks."""
    return {name: value for name, value in environ.items() if not name.startswith(_SECURITY)}
