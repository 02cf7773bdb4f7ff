"""What the pages answer when partitions have entities, history, seasons, categories, and all."""

import random

import orjson
import pytest
from aiohttp.test_utils import TestClient, TestServer
from memory_worker import FIRST, MemoryBroker, MemoryWorker

from faust_oslrau.app.pages.web import add_pages
from faust_oslrau.app.settings import LearnerSettings
from faust_oslrau.app.worker import ScoringApp

CATEGORIES = {"kinds": (("service", "category"), ("region", "category"))}
TIMED = {"time": "at", "history": ("10", "5m"), "seasons": "UTC", "rates": "1m"}
MIXTURES = LearnerSettings(mixtures=True)
OPTIONS = {
    "nothing else": {"features": ("x", "y")},
    "categories": CATEGORIES,
    "categories alone": CATEGORIES | {"features": ("service", "region"), "history": ("10",)},
    "history and seasons": TIMED | {"features": ("x", "y")},
    "entities": {"features": ("x", "y"), "entity": "device"},
    "all": CATEGORIES | TIMED | {"entity": "device", "transforms": (("x", "asinh"),)},
    "all with mixtures": CATEGORIES | TIMED | {"entity": "device", "learner": MIXTURES},
}


def _values(number):
    rng, found = random.Random(3), []
    for at in range(number):
        row = {
            "x": rng.gauss(0, 1) + (40.0 if number - 20 <= at else 0.0),
            "y": rng.gauss(5, 2),
            "service": rng.choice(["search", "search", "checkout"]),
            "region": "eu" if at < number - 10 else "mars",
            "device": f"d{at % 5}",
            "at": 1_790_000_000 + 30 * at,
        }
        found.append(orjson.dumps(row))
    return found


@pytest.fixture(params=OPTIONS)
def worker(request, tmp_path):
    changes = {"features": "auto", "forecasts": True, "alarm_rate": 0.01}
    changes |= OPTIONS[request.param]
    return MemoryWorker(tmp_path, MemoryBroker(_values(600)), **changes)


async def test_every_page_answers(worker, joined):
    app = ScoringApp("pages", web_router_enabled=False, web_tables_enabled=False)
    add_pages(app, joined)
    async with worker, TestClient(TestServer(await app.web.wsgi())) as client:
        await worker.first_read()
        await worker.held[FIRST].measure_network()
        fields = worker.held[FIRST].pipeline.fields
        asked = [
            "/", "/metrics", "/live", "/model", "/model?partition=0", "/model?format=dot",
            "/field?partition=0", *(f"/field?partition=0&field={field}" for field in fields),
            "/entities?name=d",
        ]  # fmt: skip
        if worker.settings.entity:
            asked += ["/entity?entity=d1", f"/field?partition=0&field={fields[0]}&entity=d1"]
        for path in asked:
            async with client.get(path) as response:
                assert response.status == 200, (path, await response.text())
    assert not worker.crashes
