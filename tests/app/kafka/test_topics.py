import asyncio
from dataclasses import replace

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from faust_oslrau.app.kafka.security import client_arguments
from faust_oslrau.app.kafka.topics import set_up_topics

pytestmark = pytest.mark.real_kafka


def _set_up(*settings):
    async def set_up():
        await asyncio.gather(*[set_up_topics(one, client_arguments(one)) for one in settings])

    asyncio.run(set_up())


def _describe(settings, name):
    """Return the number of partitions and the settings of a topic."""

    async def describe():
        admin = AIOKafkaAdminClient(**client_arguments(settings))
        await admin.start()
        (topic,) = await admin.describe_topics([name])
        (answer,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])
        await admin.close()
        return len(topic["partitions"]), {entry[0]: entry[1] for entry in answer.resources[0][4]}

    return asyncio.run(describe())


def test_missing_topics_are_created_with_the_partitions_of_the_source(client, settings, topic_name):
    client.create(topic_name, 3)
    _set_up(settings)
    for name in (settings.scores_topic, settings.anomalies_topic, settings.dead_letter_topic):
        partitions, config = _describe(settings, name)
        assert partitions == 3
        assert config["max.message.bytes"] == str(settings.max_output_bytes)


_FOREVER = {"retention.ms": "-1", "retention.bytes": "-1"}
_A_DAY = {"retention.ms": "86400000", "retention.bytes": "1000000"}


@pytest.mark.parametrize(
    ("source", "scores"),
    [
        ({"retention.ms": "-1"}, _FOREVER),
        (_A_DAY, _A_DAY),
        (_A_DAY | {"cleanup.policy": "compact"}, _FOREVER),
        (_A_DAY | {"cleanup.policy": "compact,delete"}, _A_DAY),
    ],
)
def test_scores_are_kept_as_long_as_their_source(source, scores, client, settings, topic_name):
    client.create(topic_name, **source)
    _set_up(settings)
    config = _describe(settings, settings.scores_topic)[1]
    assert {name: config[name] for name in _FOREVER} == scores


def test_scores_of_several_sources_are_kept_as_long_as_the_longest(client, settings, topic_name):
    other = f"{topic_name}-2"
    client.create(topic_name, **{"retention.ms": "1000", "retention.bytes": "-1"})
    client.create(other, **_A_DAY)
    _set_up(replace(settings, source_topics=(topic_name, other)))
    config = _describe(settings, settings.scores_topic)[1]
    assert config["retention.ms"] == _A_DAY["retention.ms"]
    assert config["retention.bytes"] == "-1"


def test_a_topic_kept_shorter_than_its_source_is_warned_about(client, settings, topic_name, caplog):
    client.create(topic_name, **{"cleanup.policy": "compact"})
    client.create(settings.scores_topic, **{"retention.ms": "1000", "retention.bytes": "-1"})
    client.create(settings.anomalies_topic, **{"retention.ms": "-1", "retention.bytes": "5000"})
    client.create(settings.dead_letter_topic, **_FOREVER)
    _set_up(settings)
    assert f"topic {settings.scores_topic} has retention.ms=1000," in caplog.text
    assert f"topic {settings.anomalies_topic} has retention.bytes=5000," in caplog.text
    assert caplog.text.count("deleted before they are read") == 2


def test_a_compacted_output_topic_is_warned_about(client, settings, topic_name, caplog):
    client.create(topic_name)
    client.create(settings.scores_topic, **{"cleanup.policy": "compact"})
    client.create(settings.anomalies_topic, **{"cleanup.policy": "compact,delete"})
    _set_up(settings)
    assert f"topic {settings.scores_topic} has cleanup.policy=compact:" in caplog.text
    assert f"topic {settings.anomalies_topic} has cleanup.policy=compact,delete:" in caplog.text


_BEFORE, _AFTER = "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"
_APPEND_TIME = {"message.timestamp.type": "LogAppendTime"}
_TWO_HOURS = {_AFTER: "7200000"}


@pytest.mark.parametrize(
    ("source", "scores", "warned_about"),
    [
        ({}, {}, []),  # both topics take what lies up to an hour ahead
        (_TWO_HOURS, {}, [f"{_AFTER}=3600000: ", f"set {_AFTER}=7200000"]),
        (_TWO_HOURS, _TWO_HOURS, []),
        (_TWO_HOURS, _APPEND_TIME, []),
        (_APPEND_TIME, {_AFTER: "1"}, []),
        ({_BEFORE: "7200000"}, {_BEFORE: "7200000"}, [f"{_BEFORE}=7200000: "]),
        (_APPEND_TIME, {_BEFORE: "7200000"}, [f"set {_BEFORE}={2**63 - 1}"]),
    ],
)
def test_a_topic_that_may_refuse_the_time_of_a_record_is_warned_about(
    source, scores, warned_about, client, settings, topic_name, caplog
):
    client.create(topic_name, **source)
    client.create(settings.scores_topic, **scores)
    _set_up(settings)
    assert all(warning in caplog.text for warning in warned_about)
    assert caplog.text.count("may refuse the time") == bool(warned_about)


def test_larger_topics_fit_and_smaller_ones_get_more_partitions(client, settings, topic_name):
    client.create(topic_name, 3)
    client.create(settings.scores_topic, 5)
    client.create(settings.anomalies_topic, 2)
    client.create(settings.snapshots_topic, 1, **{"cleanup.policy": "compact"})
    _set_up(*[settings] * 3)  # several workers at the same time
    assert _describe(settings, settings.scores_topic)[0] == 5
    assert _describe(settings, settings.anomalies_topic)[0] == 3
    assert _describe(settings, settings.snapshots_topic)[0] == 3
