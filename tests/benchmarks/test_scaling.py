"""The scaling benchmark, on a few records."""

import asyncio
import json

import pytest

from benchmarks import scaling
from faust_oslrau.app.brokers import KafkaBroker


@pytest.mark.slow
def test_the_cost_of_decoding_grows_with_fields():
    few, many = (scaling.cost("fields", fields, 1024, fields) for fields in (4, 64))
    assert min(few.decode, few.score, few.learn, few.emit) > 0
    assert many.decode > few.decode
    assert few.nodes > 0


@pytest.mark.slow
@pytest.mark.real_kafka
def test_two_workers_share_the_records(kafka_installed, tmp_path):
    async def run(servers):
        await scaling.create_topics(servers, scaling.TOPIC)
        await scaling.fill(servers, scaling.TOPIC, 16_000)
        return await scaling.run_workers(servers, 2, 16_000, tmp_path)

    with KafkaBroker() as broker:
        share = asyncio.run(run(broker.bootstrap_servers))
    costs = [
        scaling.Cost(varied, 4, 100, 1.0, 2.0, 3.0, 4.0, 10.5) for varied in ("fields", "nodes")
    ]
    scaling.write(tmp_path, [share], costs, 1024)
    figures = json.loads((tmp_path / "scaling.md").read_text().splitlines()[-1])
    assert figures["workers"][0]["workers"] == 2
    assert figures["workers"][0]["cpu_seconds"] > 0
    assert figures["costs"][0]["learn"] == 3.0
