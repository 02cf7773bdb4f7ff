"""Acceptances in a topic of a real Kafka."""

import asyncio
import random
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import orjson
import pytest
from faust.types import TP

from faust_oslrau.app.kafka.security import client_arguments
from faust_oslrau.app.kafka.transactions import LostPartitionError, Producers
from faust_oslrau.app.registry import AcceptanceLog
from faust_oslrau.app.registry.acceptance_log import (
    OtherAcceptanceError,
    acceptance_of,
    acceptance_value,
)
from faust_oslrau.app.settings import RegistrySettings
from faust_oslrau.topics import OutMessage
from faust_oslrau.topics.formats import Acceptance, Schema

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


WRITTEN = orjson.loads(acceptance_value(ACCEPTED[1], "http://r", "id-1"))
OF_OTHERS = [
    b"", b"[", b"[" * 4000, b'{"more":' + b"[" * 4000, b"[]", b"{}", b"\xff", b"null",
    *(orjson.dumps(WRITTEN | changed) for changed in (
        {"start": "x"}, {"start": -1}, {"start": True}, {"start": 1.5}, {"end": "x"}, {"id": 0},
        {"id": 2**31}, {"topic_id": 7}, {"registry": []}, {"schema": []}, {"format": "1"},
        {"format": 0}, {"format": True}, {"schema": {"kind": "AVRO", "text": 5, "references": []}},
        {"schema": {"kind": "AVRO", "text": "x", "references": None}},
        {"schema": {"kind": "AVRO", "text": "x", "references": [["a"]]}},
    )),
]  # fmt: skip


@pytest.mark.parametrize("value", OF_OTHERS, ids=lambda value: value[:40])
def test_what_another_program_wrote_is_no_acceptance(value):
    assert acceptance_of(value) is None


def test_any_change_of_a_message_is_an_acceptance_or_none():
    chance, value = random.Random(5), orjson.dumps(WRITTEN)
    for _ in range(2000):
        at = chance.randrange(len(value))
        with suppress(OtherAcceptanceError):
            found = acceptance_of(value[:at] + chance.randbytes(2) + value[at + 1 :])
            assert found is None or isinstance(found, Acceptance)


@pytest.mark.parametrize("value", [b'{"format": 2}', orjson.dumps(WRITTEN | {"format": 3})])
def test_what_a_later_version_wrote_is_refused_by_its_format(value):
    with pytest.raises(OtherAcceptanceError, match=r"expected format 1, got [23]"):
        acceptance_of(value)


def log_of(settings):
    return AcceptanceLog(settings, client_arguments(settings))


@asynccontextmanager
async def producers_of(settings):
    found = Producers(settings.app_id, client_arguments(settings))
    await found.open(SOURCE)
    yield found
    await found.close()


@pytest.mark.real_kafka
async def test_what_is_accepted_is_found_by_the_same_deployment_for_the_same_topic(own):
    log = log_of(own)
    async with producers_of(own) as producers:
        assert await log.load(SOURCE, "id-1") == []
        await log.save(SOURCE, "id-1", ACCEPTED[:1], producers.of(SOURCE))
        await log.save(SOURCE, "id-1", ACCEPTED[1:], producers.of(SOURCE))
    for topic_id in ("id-1", None):
        assert await log.load(SOURCE, topic_id) == ACCEPTED
    assert await log.load(SOURCE, "id-2") == []  # a topic of this name that was made anew
    assert await log.load(TP("machines", 1), "id-1") == []
    assert await log.load(TP("machine", 0), "id-1") == []
    assert await log_of(replace(own, app_id="other")).load(SOURCE, "id-1") == []
    missing = replace(own.registry, schemas_topic=f"{own.app_id}.none")  # there is no such topic
    assert await log_of(replace(own, registry=missing)).load(SOURCE, "id-1") == []


@pytest.mark.real_kafka
async def test_another_address_of_the_registry_is_told(own, caplog):
    async with producers_of(own) as producers:
        await log_of(own).save(SOURCE, None, ACCEPTED, producers.of(SOURCE))
    moved = replace(own, registry=replace(own.registry, url="http://moved"))
    assert await log_of(moved).load(SOURCE, None) == ACCEPTED
    assert "schemas were accepted from http://r and go on to hold" in caplog.text


@pytest.mark.real_kafka
async def test_a_fenced_owner_accepts_nothing(own):
    log = log_of(own)
    async with producers_of(own) as former, producers_of(own) as later:
        await log.save(SOURCE, None, ACCEPTED[:1], later.of(SOURCE))
        with pytest.raises(LostPartitionError):
            await log.save(SOURCE, None, ACCEPTED[1:], former.of(SOURCE))
    assert await log.load(SOURCE, None) == ACCEPTED[:1]


@pytest.mark.real_kafka
async def test_what_comes_after_an_open_transaction_of_another_deployment_is_found(own):
    log, another = log_of(own), replace(own, app_id=f"{own.app_id}-other")
    async with producers_of(own) as producers, producers_of(another) as other:
        async with other.of(SOURCE).transaction() as transaction:
            unread = OutMessage(0, b"other", b"{}", None)
            await transaction.send(own.registry.schemas_topic, 0, [unread])
            await log.save(SOURCE, None, ACCEPTED, producers.of(SOURCE))
            loading = asyncio.create_task(log.load(SOURCE, None))
            await asyncio.sleep(1)
            assert not loading.done()
        assert await loading == ACCEPTED


@pytest.mark.real_kafka
async def test_messages_of_other_programs_are_passed_over_and_told(own, caplog):
    log = log_of(own)
    key = f"{own.app_id}/machines/0/12/7".encode()  # that of the first acceptance
    other = acceptance_value(ACCEPTED[0]._replace(start=3), "http://r", None)
    crafted = [OutMessage(0, key, value, None) for value in (*OF_OTHERS, other)]
    async with producers_of(own) as producers:
        await log.save(SOURCE, None, ACCEPTED, producers.of(SOURCE))
        async with producers.of(SOURCE).transaction() as transaction:
            await transaction.send(own.registry.schemas_topic, 0, crafted)
        assert await log.load(SOURCE, None) == ACCEPTED
    told = f"of {len(crafted)} that are passed over"
    assert [each for each in caplog.messages if each.endswith(told)] == caplog.messages[-1:]
