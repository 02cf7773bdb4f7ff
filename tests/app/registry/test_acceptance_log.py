"""Acceptances in a topic of a real Kafka."""

import asyncio
from dataclasses import replace

import pytest
from faust.types import TP

from faust_oslrau.app.kafka.security import client_arguments
from faust_oslrau.app.kafka.transactions import LostPartitionError, Producers
from faust_oslrau.app.registry import AcceptanceLog
from faust_oslrau.app.settings import RegistrySettings
from faust_oslrau.topics import OutMessage
from faust_oslrau.topics.formats import Acceptance, Schema

pytestmark = pytest.mark.real_kafka

SOURCE = TP("machines", 0)
ACCEPTED = [
    Acceptance(7, None, 12, 40),
    Acceptance(7, Schema("AVRO", '{"type": "é"}', (("a", "b"), ("c", "d"))), 40, None),
    Acceptance(9, Schema("PROTOBUF", "message M {}"), 41, None),
]


@pytest.fixture
def own(settings, client):
    """Settings whose topic of acceptances exists."""
    registry = RegistrySettings(url="http://r", schemas_topic=f"{settings.app_id}.schemas")
    client.create(registry.schemas_topic, 2, **{"cleanup.policy": "compact"})
    return replace(settings, format="avro", registry=registry)


def log_of(settings):
    return AcceptanceLog(settings, client_arguments(settings))


async def producers_of(settings):
    found = Producers(settings.app_id, client_arguments(settings))
    await found.open(SOURCE)
    return found


def test_what_is_accepted_is_found_by_the_same_deployment_for_the_same_topic(own):
    async def check():
        log, producers = log_of(own), await producers_of(own)
        assert await log.load(SOURCE, "id-1") == []
        await log.save(SOURCE, "id-1", ACCEPTED[:1], producers.of(SOURCE))
        await log.save(SOURCE, "id-1", ACCEPTED[1:], producers.of(SOURCE))
        for topic_id in ("id-1", None):
            assert await log.load(SOURCE, topic_id) == ACCEPTED
        assert await log.load(SOURCE, "id-2") == []  # a topic of this name that was made anew
        assert await log.load(TP("machines", 1), "id-1") == []
        assert await log.load(TP("machine", 0), "id-1") == []
        assert await log_of(replace(own, app_id="other")).load(SOURCE, "id-1") == []
        await producers.close()

    asyncio.run(check())


def test_a_topic_that_does_not_exist_holds_nothing(own):
    missing = replace(own.registry, schemas_topic=f"{own.app_id}.none")
    asyncio.run(_is_empty(log_of(replace(own, registry=missing))))


async def _is_empty(log):
    assert await log.load(SOURCE, "id-1") == []


def test_another_address_of_the_registry_is_told(own, caplog):
    async def check():
        producers = await producers_of(own)
        await log_of(own).save(SOURCE, None, ACCEPTED, producers.of(SOURCE))
        moved = replace(own, registry=replace(own.registry, url="http://moved"))
        assert await log_of(moved).load(SOURCE, None) == ACCEPTED
        await producers.close()

    asyncio.run(check())
    assert "schemas were accepted from http://r and go on to hold" in caplog.text


def test_a_fenced_owner_accepts_nothing(own):
    async def check():
        former, log = await producers_of(own), log_of(own)
        later = await producers_of(own)
        await log.save(SOURCE, None, ACCEPTED[:1], later.of(SOURCE))
        with pytest.raises(LostPartitionError):
            await log.save(SOURCE, None, ACCEPTED[1:], former.of(SOURCE))
        assert await log.load(SOURCE, None) == ACCEPTED[:1]
        await former.close()
        await later.close()

    asyncio.run(check())


def test_what_comes_after_an_open_transaction_of_another_deployment_is_found(own):
    async def check():
        producers, log = await producers_of(own), log_of(own)
        other = await producers_of(replace(own, app_id=f"{own.app_id}-other"))
        topic = own.registry.schemas_topic
        async with other.of(SOURCE).transaction() as transaction:
            await transaction.send(topic, 0, [OutMessage(0, b"other", b"{}", None)])
            await log.save(SOURCE, None, ACCEPTED, producers.of(SOURCE))
            loading = asyncio.create_task(log.load(SOURCE, None))
            await asyncio.sleep(1)
            assert not loading.done()
        assert await loading == ACCEPTED
        await producers.close()
        await other.close()

    asyncio.run(check())
