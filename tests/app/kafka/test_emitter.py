import asyncio
import gc
import time

import orjson
import pytest

from faust_oslrau.app.kafka.connection import AS_THEY_ARE
from faust_oslrau.app.kafka.emitter import Emitter
from faust_oslrau.topics import OutMessage
from faust_oslrau.topics.formats import message_schema, message_writer

pytestmark = pytest.mark.real_kafka

_NOW = int(time.time() * 1000)


def _messages(values, headers=()):
    return [OutMessage(i, b"k%d" % i, value, _NOW, headers) for i, value in enumerate(values)]


def _send(client, *calls, writers=AS_THEY_ARE):
    async def send():
        emitter = Emitter({"bootstrap_servers": client.servers}, writers)
        await emitter.start()
        await asyncio.gather(*[emitter.send(*call) for call in calls])
        await emitter.stop()

    asyncio.run(send())


def test_too_large_dead_letters_lose_their_content_and_no_other_message_suffers(client, topic_name):
    small, large = f"{topic_name}-small", f"{topic_name}-large"
    client.create(small, 1, **{"max.message.bytes": "50000"})
    client.create(large)
    values = [b"a" * 1000] * 200 + [b"b" * 60_000] + [b"c"] * 10
    messages = _messages(values, headers=(("own", b"1"), ("oslrau-reason", b"not_json")))
    _send(client, (small, 0, messages), *[(large, 0, _messages([b"d"] * 100))] * 5)
    found = client.read(small)
    assert [record.value for record in found] == [*values[:200], None, *values[201:]]
    headers = dict(found[200].headers)
    assert set(headers) == {"oslrau-reason", "oslrau-left-out-bytes"}
    assert len(client.read(large)) == 500


def test_a_message_that_is_too_large_as_avro_loses_its_largest_part(client, topic_name):
    client.create(topic_name, 1, **{"max.message.bytes": "50000"})
    score = {
        "topic": "t", "partition": 0, "offset": 0, "timestamp": None, "log_likelihood": None,
        "p_value": None, "is_anomaly": True, "n_learned": 1, "warming_up": False,
    }  # fmt: skip
    text = orjson.dumps(score)
    large = orjson.dumps(score | {"record": {"a": "x" * 60_000}})
    write = message_writer(message_schema("anomalies"), 7)
    messages = _messages([text, large, text])
    _send(client, (topic_name, 0, messages), writers={topic_name: write})
    found = client.read(topic_name)
    assert [record.value for record in found] == [write(text)] * 3
    assert dict(found[1].headers)["oslrau-topic"] == b"t"


async def test_an_emitter_that_is_stopped_while_it_connects_leaves_nothing_open(caplog):
    silent = await asyncio.start_server(lambda *_: asyncio.sleep(3600), "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    starting = asyncio.create_task(Emitter({"bootstrap_servers": f"127.0.0.1:{port}"}).start())
    await asyncio.sleep(0.2)
    assert not starting.done()
    starting.cancel()
    await asyncio.wait({starting})
    del starting  # whose failure refers to the producer
    silent.close()
    gc.collect()
    assert "Unclosed" not in caplog.text


async def test_a_missing_partition_is_waited_for(client, topic_name, caplog):
    await asyncio.to_thread(client.create, topic_name, 1)
    emitter = Emitter({"bootstrap_servers": client.servers})
    sending = asyncio.create_task(emitter.send(topic_name, 1, _messages([b"x"])))
    while "has no partition 1" not in caplog.text:
        await asyncio.sleep(0.02)
    await asyncio.to_thread(client.add_partitions, topic_name, 2)
    await sending
    await emitter.stop()
    found = await asyncio.to_thread(client.read, topic_name)
    assert [(record.partition, record.value) for record in found] == [(1, b"x")]
