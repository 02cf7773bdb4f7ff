"""What the pages answer, on the web server of a Faust app that has not joined a group."""

from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import product

import pytest
from aiohttp.test_utils import TestClient, TestServer
from aiokafka.errors import KafkaConnectionError
from memory_worker import FIRST, SECOND
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from faust_oslrau.app.pages.web import add_pages
from faust_oslrau.app.worker import ScoringApp


@pytest.fixture
def app(tmp_path):
    return ScoringApp("pages", web_router_enabled=False, web_tables_enabled=False)


@pytest.fixture
def browse(app, joined, worker):
    """A context with a client of the pages; the worker holds both partitions, with one model."""

    @asynccontextmanager
    async def browse():
        add_pages(app, joined)
        async with TestClient(TestServer(await app.web.wsgi())) as client:
            await worker.assign(FIRST, SECOND)
            await worker.read(FIRST)
            await worker.held[FIRST].measure_network()
            yield client

    return browse


async def _json(answer):
    async with answer as response:
        return response.status, await response.json()


async def test_health_is_a_status_and_a_reason(browse, joined):
    async with browse() as client:
        for page in ("/healthz", "/readyz"):
            assert await _json(client.get(page)) == (200, {"status": "ok"})
        joined.preparing = "starting"
        refusal = {"status": "unavailable", "reason": "starting"}
        assert await _json(client.get("/readyz")) == (503, refusal)
        joined.compiled = 0.25
        assert await _json(client.get("/readyz")) == (503, {**refusal, "compiled": 0.25})
        assert await _json(client.get("/healthz")) == (200, {"status": "ok"})


async def test_a_rebalance_of_the_app_is_one_of_the_worker(browse, app):
    async with browse() as client:
        app.rebalancing = True
        _, answer = await _json(client.get("/readyz"))
        assert answer["reason"] == "the group is rebalancing"
        _, answer = await _json(client.get("/live"))
        assert answer["waiting_for"] == "the group is rebalancing"


async def test_metrics_come_in_openmetrics_for_who_asks_for_it(browse, joined):
    accept = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"}
    async with browse() as client:
        async with client.get("/metrics", headers=accept) as response:
            kind = response.headers["Content-Type"]
            assert kind.startswith("application/openmetrics-text; version=")
            assert response.headers["Vary"].startswith("Accept")
            families = text_string_to_metric_families(await response.text())
            assert "oslrau_assigned_partitions" in {family.name for family in families}
        async with client.get("/metrics") as response:
            assert response.headers["Content-Type"].startswith("text/plain; version=")
            assert "oslrau_assigned_partitions" in await response.text()


async def test_models_are_summed_up_or_drawn(browse, worker):
    async with browse() as client:
        _, models = await _json(client.get("/model"))
        assert [part["next_offset"] for part in models["partitions"]] == [300, 0]
        status, outline = await _json(client.get("/model?topic=features&partition=0"))
        assert (status, outline["topic"], outline["partition"]) == (200, "features", 0)
        assert (outline["learned"], outline["fields"]) == (240, ["a", "b"])
        async with client.get("/model?format=dot") as response:  # of the first that has a network
            assert response.headers["Content-Type"].startswith("text/plain")
            assert (await response.text()).startswith("digraph")


_NO_PARTITION = "no such partition here, or nothing learned yet"
_PLACES = ("partition=1", "partition=7", "partition=x", "partition=00", "topic=a", "topic=&x=1")
_NO_FILES = ("nothing.js", "..%2fweb.py", "static", "%00", "index.html%20")
_NO_ENTITY = "no such entity in this partition"


async def test_what_there_is_not_is_refused_with_the_reason(browse):
    asked = {
        **{f"/model?{place}": _NO_PARTITION for place in _PLACES},
        "/entity?partition=7&entity=nobody": _NO_PARTITION,
        "/entity?partition=0&entity=nobody": _NO_ENTITY,
        "/field?partition=0&entity=nobody": _NO_ENTITY,
        **{f"/page/{name}": "no such page" for name in _NO_FILES},
    }
    async with browse() as client:
        for page, reason in asked.items():
            refusal = {"status": "refused", "reason": reason}
            assert await _json(client.get(page)) == (404, refusal), page


async def test_numbers_that_are_not_known_are_null(browse, monkeypatch):
    monkeypatch.setattr("faust_oslrau.app.pages.live_state._BEGAN", -1000.0)
    async with browse() as client:
        status, state = await _json(client.get("/live?topic=features&partition=1"))
        assert status == 200
        assert set(state["seconds"]["lowest"]) == set(state["seconds"]["lag"]) == {None}
        assert set(state["seconds"]["scored"]) == {0}


async def test_the_live_state_of_no_partition_is_empty_not_an_error(browse, joined):
    async with browse() as client:
        status, state = await _json(client.get("/live?partition=7"))
        assert (status, state["anomalies"]) == (200, [])
        joined.assignment = None
        status, state = await _json(client.get("/live?since=1"))  # another query: no shared answer
        assert (status, state["partitions"]) == (200, [])


async def test_entities_are_found_by_a_part_of_their_name(browse, joined):
    async with browse() as client:
        status, answer = await _json(client.get("/entities?name=nobody"))
        assert (status, answer) == (200, {"entities": []})  # as without the setting
        for partition in joined.assignment.held.values():
            partition.search_entities = _found
        _, answer = await _json(client.get("/entities?name=saw&partition=0"))
        found = [(each["partition"], each["entity"]) for each in answer["entities"]]
        assert found == [(0, "saw"), (0, "chainsaw")]


async def _found(part, most):
    return ["chainsaw", part]


async def test_any_whole_number_is_a_moment_and_nothing_else(browse):
    refusal = {"status": "refused", "reason": "since: expected whole seconds since 1970"}
    async with browse() as client:
        for since in ("yesterday", "", "1.5", "nan", "1e3", "9" * 5000):
            assert await _json(client.get("/live", params={"since": since})) == (400, refusal)
        for since in ("-1", "0", "9" * 40):
            status, state = await _json(client.get(f"/live?since={since}"))
            assert status == 200 and state["since"] <= state["until"]


async def test_the_page_is_there_with_a_strict_policy(browse):
    async with browse() as client:
        async with client.get("/") as response:
            assert response.headers["Content-Type"] == "text/html; charset=utf-8"
            policy = response.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy and "unsafe" not in policy
        async with client.get("/page/main.js") as response:
            assert response.headers["Content-Type"] == "text/javascript; charset=utf-8"
            assert response.headers["X-Content-Type-Options"] == "nosniff"


async def test_pages_only_answer_questions(browse):
    async with browse() as client:
        for page in ("/", "/metrics", "/healthz", "/readyz", "/model", "/live"):
            async with client.post(page) as response:
                assert response.status == 405, page


async def test_a_page_that_the_app_has_stays(app, browse):
    async def own(view, request):
        return view.web.text("mine")

    app.page("/")(own)
    async with browse() as client, client.get("/") as response:
        assert await response.text() == "mine"


def _incident(offset):
    """An event of an incident of the second partition, of which the worker knows a part."""
    name = f"features/1/{offset}"
    return {"event": "incident", "topic": "features", "partition": 1, "offset": offset + 1,
            "state": "closed", "incident": name, "opened_timestamp": None}  # fmt: skip


class _PastIncidents:
    """An anomalies topic with one incident of each partition."""

    def __init__(self):
        self.asked = []

    async def find(self, tp, incident, opened):
        self.asked.append(tp)
        if tp == ("features", 2):
            raise KafkaConnectionError
        event = {**_incident(5), "partition": tp.partition}
        return event if incident == f"features/{tp.partition}/5" else None


@pytest.fixture
def past(joined):
    joined.past_incidents = _PastIncidents()
    return joined.past_incidents


async def test_an_incident_is_found_whoever_holds_its_partition(browse, worker, past):
    async with browse() as client:
        worker.held[SECOND].metrics.history.incidents.add(_incident(7), 3.0)
        _, found = await _json(client.get("/incident?topic=features&partition=1&offset=7"))
        known = {**_incident(7), "noted": 3.0, "since": None}
        assert found == {"is_held": True, "incident": known}
        assert past.asked == []  # the worker knows it
        _, found = await _json(client.get("/incident?topic=features&partition=1&offset=5"))
        assert found["is_held"] and found["incident"]["noted"] is None  # older than what it knows
        _, found = await _json(client.get("/incident?topic=features&partition=9&offset=5"))
        assert not found["is_held"] and found["incident"]["partition"] == 9


async def test_the_address_of_an_incident_is_the_page_below_the_root(browse, past):
    async with browse() as client:
        async with client.get("/incidents/features/1/5") as response:
            text = await response.text()
            assert response.headers["Content-Type"].startswith("text/html")
            assert '<base href="../../../">' in text
        async with client.get("/") as response:
            assert await response.text() == text.replace('  <base href="../../../">\n', "")


@pytest.mark.parametrize(
    ("place", "status", "said"),
    [
        ("features/1/6", 404, "There is no incident features/1/6 in the topic anomalies."),
        (f"features/{5000 * '1'}/5", 404, "There is no incident features/11111"),
        (f"features/1/{5000 * '1'}", 404, "There is no incident features/1/1111"),
        ("features/x/5", 404, "There is no incident features/x/5: no such partition is scored."),
        ("a%20%3Cb%3E/1/5", 404, "There is no incident a <b>/1/5: no such partition is scored."),
        ("features/2/5", 503, "The topic anomalies cannot be read at present."),
    ],
)
async def test_an_address_without_an_incident_says_why(place, status, said, browse, past):
    async with browse() as client, client.get(f"/incidents/{place}") as response:
        assert (response.status, response.content_type) == (status, "text/plain")
        assert (await response.text()).startswith(said)


_PRIVATE = (
    *("/", "/page/main.js", "/live", "/model", "/model?partition=0", "/model?format=dot"),
    *("/field?partition=0", "/entities?name=saw", "/entity?partition=0&entity=saw"),
    *("/incidents/features/1/5", "/incident?topic=features&partition=1&offset=5"),
)
_OPEN = ("/metrics", "/healthz", "/readyz")


_FOREIGN = ("evil.example", "evil.example:6066", "", "10.0.0.7", "localhost.evil.example")
_OWN = (
    *("localhost", "LOCALHOST:1", "localhost.", "127.0.0.1:6066", "127.1.2.3", "[::1]:6066"),
    *("10.0.0.7", "Worker.example:80", "ops.example"),
)


async def test_under_a_foreign_name_only_health_and_metrics_are_shown(browse, past):
    async with browse() as client:
        for host, page in product(_FOREIGN, _PRIVATE):
            status, answer = await _json(client.get(page, headers={"Host": host}))
            assert (status, answer["status"]) == (421, "refused"), (host, page)
            assert "web_allowed_hosts" in answer["reason"] and "\n" not in answer["reason"]
        for host, page in product(_FOREIGN, _OPEN):
            async with client.get(page, headers={"Host": host}) as response:
                assert response.status == 200, (host, page)


async def test_loopback_names_and_named_hosts_are_shown_everything(browse, joined, past):
    joined.settings = replace(
        joined.settings,
        web_host="10.0.0.7",
        web_allowed_hosts="worker.example,b.example",
        page_url="https://Ops.example/oslrau",
    )
    async with browse() as client:
        for host, page in product(_OWN, _PRIVATE + _OPEN):
            async with client.get(page, headers={"Host": host}) as response:
                # the partition has no entities
                expected = 404 if page.startswith("/entity?") else 200
                assert response.status == expected, (host, page)


async def test_any_host_is_allowed_only_if_the_setting_says_so(browse, joined):
    joined.settings = replace(joined.settings, web_allowed_hosts="*")
    async with browse() as client, client.get("/", headers={"Host": "any.example"}) as response:
        assert response.status == 200
