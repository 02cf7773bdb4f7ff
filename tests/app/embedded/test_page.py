"""The page for people in a real browser, while a real worker runs."""

from __future__ import annotations

import re
import time

import numpy as np
import orjson
import pytest
from axe import axe_core, violations
from browser import Page, chromium
from selenium.webdriver import ActionChains, Keys

pytestmark = pytest.mark.browser

_STRANGE = '<img src="x" onerror="alert(1)">'
_ODD = 5
_PHONE = 360


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture
def page(browser, settings):
    """The page of a worker that the test starts; no test may leave an error in the console."""
    seen = Page(browser, settings.web_port)
    seen.errors()
    seen.hosts()
    yield seen
    browser.get("about:blank")


def _rows(number, seed=0, key=None, partition=0):
    """Rows of three fields of which the first two go together."""
    rng = np.random.default_rng(seed)
    for a, noise, c in rng.normal(size=(number, 3)).tolist():
        yield partition, orjson.dumps({"a": a, "b": a + noise / 10, _STRANGE: 5 + 2 * c}), key


def _odd_rows(key=None):
    """As few unusual rows as open an incident."""
    row = orjson.dumps({"a": 0.1, "b": 0.1, _STRANGE: 1e6})
    return [(0, row, key)] * _ODD


def test_the_page_loads_without_an_error_and_asks_nobody_but_its_worker(
    topics, client, start_worker, page, topic_name
):
    client.send(topic_name, _rows(300))
    start_worker().wait_ready().wait_records(300)
    page.open().wait_state("live")
    page.wait_until(lambda: page.number("#nodes") > 0, "aware of the network")
    assert page.hosts() == {page.host}
    assert page.errors() == []


def test_a_worker_that_is_not_ready_says_what_it_waits_for(start_worker, page, servers):
    worker = start_worker(broker="127.0.0.1:9")  # nobody answers there
    worker.wait_until(lambda: "waiting for the broker" in worker.get("/readyz")[1], "waiting")
    page.open().wait_state("waiting")
    assert page.text("#status") == "waiting for the broker and the topics"
    assert page.errors() == []


def test_numbers_and_charts_follow_the_records(topics, client, start_worker, page, topic_name):
    start_worker().wait_ready()
    page.open().wait_state("live")
    before = page.find("#throughput canvas").get_attribute("aria-label")
    assert page.pixels("#throughput canvas", "blue") == 0
    client.send(topic_name, [*_rows(600), (1, b"broken")])
    page.wait_until(lambda: page.number("#rejected-count") == 1, "aware of the rejected record")
    page.wait_until(lambda: page.pixels("#throughput canvas", "blue") > 0, "drawing throughput")
    page.wait_until(lambda: page.pixels("#likelihood canvas", "blue") > 0, "drawing scores")
    assert page.find("#throughput canvas").get_attribute("aria-label") != before
    nodes, drawn = page.number("#nodes"), page.pixels("#throughput canvas", "blue")
    client.send(topic_name, _rows(600, seed=1, partition=1))
    page.wait_until(lambda: page.number("#nodes") > nodes, "aware of the second network")
    page.wait_until(lambda: page.pixels("#throughput canvas", "blue") > drawn, "drawing more")
    page.theme("dark")  # other colours by the same names
    page.wait_until(lambda: page.pixels("#throughput canvas", "blue") > 0, "dark")
    page.tab("network")
    page.wait_until(lambda: page.pixels("#tree", "card") > 0, "dark as well")
    page.theme("light")
    assert page.errors() == []


def test_an_anomaly_shows_its_fields_the_one_to_blame_on_top(
    topics, client, start_worker, page, topic_name
):
    client.send(topic_name, _rows(3000))
    worker = start_worker().wait_ready().wait_records(3000)
    page.open().wait_state("live")
    odd = {"a": 0.1, "b": 0.1, _STRANGE: 500}
    client.send(topic_name, [(0, orjson.dumps(odd), _STRANGE.encode())])
    worker.wait_records(3001)
    title = "#anomalies .anomaly:first-child h3"
    page.wait_until(lambda: "offset 3000" in page.text(title), "showing the anomaly")
    assert page.text(title).endswith(f"key {_STRANGE}")
    assert page.text("#anomalies .anomaly:first-child li:first-child .name") == _STRANGE
    assert "500" in page.text("#anomalies .anomaly:first-child li:first-child .value")
    page.wait_until(lambda: page.number("#anomaly-count") >= 1, "counting it")
    # A name from outside is a text, and nothing of it runs.
    assert page.count(".anomaly img, #details img, option img") == 0
    assert page.errors() == []


def test_an_anomaly_says_which_category_the_other_fields_suggest(
    topics, client, start_worker, page, topic_name
):
    rng = np.random.default_rng(0)
    rows = [{"a": a, "service": "search"} for a in rng.normal(size=3000).tolist()]
    client.send(topic_name, [(0, orjson.dumps(row)) for row in rows])
    worker = start_worker(alarm_rate=0.005).wait_ready().wait_records(3000)
    page.open().wait_state("live")
    client.send(topic_name, [(0, orjson.dumps({"a": 0.1, "service": _STRANGE}))])
    worker.wait_records(3001)
    first = "#anomalies .anomaly:first-child li:first-child"
    page.wait_until(lambda: page.count(first) and page.text(f"{first} .name") == "service", "told")
    assert page.text(f"{first} .value") == f"is {_STRANGE}, the other fields suggest search"
    assert page.count(".anomaly img") == 0
    offered = page.run(
        "return [...document.querySelectorAll('#field-choice option')].map((o) => o.value)"
    )
    assert "service" not in offered and "a" in offered  # only numbers have a course
    assert page.errors() == []


def test_an_open_incident_shows_its_severity_and_field_and_then_that_it_closed(
    topics, client, start_worker, page, topic_name
):
    client.send(topic_name, _rows(3000))
    worker = start_worker().wait_ready().wait_records(3000)
    page.open().wait_state("live")
    assert page.text("#incidents") == "None so far."
    client.send(topic_name, _odd_rows())
    worker.wait_records(3000 + _ODD)
    title = "#incidents .incident h3"
    page.wait_until(lambda: page.count(title) == 1, "showing the incident")
    assert re.fullmatch(r"(minor|major|critical) open(, unusual for \d+ s)?", page.text(title))
    assert f"{topic_name}/0" in page.text("#incidents .incident p")
    assert page.number("#open-incidents") == 1
    assert page.text("#incidents li:first-child .name") == _STRANGE
    client.send(topic_name, _rows(300, seed=2))
    page.wait_until(lambda: "closed" in page.text(title), "showing that it closed")
    page.wait_until(lambda: page.number("#open-incidents") == 0, "aware that it closed")
    assert page.count(title) == 1 and page.count("#incidents img") == 0
    assert page.errors() == []


def test_the_address_of_an_incident_opens_it_with_its_entity_and_its_field(
    topics, client, start_worker, page, topic_name
):
    names = [b"machine %d/%%" % (at % 3) for at in range(3000)]
    rows = [row[1] for row in _rows(3000)]
    client.send(topic_name, [(0, row, key) for row, key in zip(rows, names, strict=True)])
    worker = start_worker(entity="key").wait_ready().wait_records(3000)
    client.send(topic_name, _odd_rows(names[1]))
    worker.wait_records(3000 + _ODD)
    page.open().wait_state("live")
    page.wait_until(lambda: page.count(".incident") == 1, "showing the incident")
    assert not page.find("#addressed").is_displayed()
    page.run("document.querySelector('.incident details').open = true")
    page.find(".incident details a").click()
    page.wait_until(lambda: page.count("#addressed .incident") == 1, "at the incident's address")
    assert page.browser.current_url.startswith(f"http://{page.host}/incidents/{topic_name}/0/30")
    assert page.text("#addressed h2") == f"Incident {page.text('#addressed details a')}"
    assert page.text("#elsewhere") == ""
    assert page.run("return document.activeElement.id") == "addressed"
    page.wait_state("live").wait_until(
        lambda: page.find("#entity-name").get_attribute("value") == names[1].decode(), "choosing it"
    )
    page.wait_until(lambda: page.find("#field-choice").get_attribute("value") == _STRANGE, "there")
    page.find("#addressed .heading a").click()
    page.wait_until(lambda: page.browser.current_url == f"http://{page.host}/", "back")
    assert page.errors() == []


def test_an_entity_that_alarms_can_be_chosen_to_see_what_is_usual_for_it(
    topics, client, start_worker, page, topic_name
):
    rows = list(_rows(3000))
    keys = [_STRANGE.encode() if at % 3 else b"saw" for at in range(3000)]
    client.send(topic_name, [(0, row[1], key) for row, key in zip(rows, keys, strict=True)])
    worker = start_worker(entity="key").wait_ready().wait_records(3000)
    page.open().wait_state("live")
    odd = orjson.dumps({"a": 0.1, "b": 0.1, _STRANGE: 500})
    client.send(topic_name, [(0, odd, _STRANGE.encode())])
    worker.wait_records(3001)
    page.wait_until(lambda: page.count("#alarming button") > 0, "listing the entity")
    assert page.text("#alarming button") == _STRANGE
    page.find("#alarming button").click()
    page.wait_until(lambda: page.count("#entity table tr") == 4, "showing its fields")
    assert _STRANGE in page.text("#entity h3") and page.count("#entity img") == 0
    assert page.errors() == []


def test_an_entity_unlike_all_others_is_listed_with_what_differs_and_by_how_much(
    topics, client, start_worker, page, topic_name
):
    a, b = np.random.default_rng(0).normal(size=(2, 7200))
    a[3::24] += 40  # one of 24 machines
    rows = zip(a.tolist(), b.tolist(), strict=True)
    client.send(
        topic_name,
        [
            (0, orjson.dumps({"a": x, "b": y}), b"machine-%02d" % (at % 24))
            for at, (x, y) in enumerate(rows)
        ],
    )
    start_worker(entity="key").wait_ready().wait_records(7200)
    page.open().wait_until(lambda: page.count("#unusual button") == 1, "listing the entity")
    said = r"machine-03 .*/0 · unusual: a is around 40(\.\d)?, usual \S+, \d+ times as far from .*"
    assert re.fullmatch(said, page.text("#unusual"))
    assert page.errors() == []


def test_entities_that_have_stopped_are_listed_until_they_return(
    topics, client, start_worker, page, topic_name
):
    now = 1000 * int(time.time()) - 1000 * 900

    def send(seconds, devices):
        rows = [
            (0, b'{"a": %d}' % (i % 7), b"%d" % (i % devices), (), now + 1000 * i) for i in seconds
        ]
        client.send(topic_name, rows)

    send(range(300), 3)
    send(range(300, 600), 2)
    worker = (
        start_worker(entity="key", events="records,incidents,unusual_entities,silences")
        .wait_ready()
        .wait_records(600)
    )
    page.open().wait_state("live")
    page.wait_until(lambda: page.count("#silent button") == 1, "listing the silent entity")
    assert page.text("#silent button") == "2" and "usual up to" in page.text("#silent")
    send(range(600, 610), 3)
    worker.wait_records(610)
    page.wait_until(lambda: page.count("#silent button") == 0, "listing none")
    assert page.errors() == []


def test_one_of_many_entities_can_be_found_and_shows_its_field_and_its_incidents(
    topics, client, start_worker, page, topic_name
):
    names = [b"machine-%02d" % (at % 60) for at in range(6000)]
    rows = [row[1] for row in _rows(6000)]
    client.send(topic_name, [(0, row, key) for row, key in zip(rows, names, strict=True)])
    worker = start_worker(entity="key").wait_ready().wait_records(6000)
    page.open().wait_state("live")
    client.send(topic_name, _odd_rows(b"machine-42"))
    worker.wait_records(6000 + _ODD)
    page.wait_until(lambda: page.count(".incident") == 1, "showing the incident")
    search = page.find("#filter input")
    search.send_keys("machine-42")
    assert page.count(".incident") == 1
    search.send_keys("0")
    assert page.text("#incidents") == "None that match."
    search.clear()
    choice = page.find("#entity-name")
    choice.send_keys("ne-4", Keys.ENTER)
    page.wait_until(lambda: "10 entities" in page.text("#entity-note"), "asking for more")
    assert page.count("#entity-names option") <= 20
    choice.send_keys("2000", Keys.ENTER)
    page.wait_until(lambda: "no entity" in page.text("#entity-note"), "saying there is none")
    choice.clear()
    choice.send_keys("ine-42", Keys.ENTER)
    page.wait_until(lambda: page.text("#entity-note") == f"in {topic_name}/0", "choosing it")
    assert choice.get_attribute("value") == "machine-42"
    page.wait_until(lambda: "machine-42" in page.text("#entity h3"), "showing what is usual for it")
    assert page.text("#field-place").startswith("of machine-42")
    page.wait_until(lambda: page.pixels("#field canvas", "red") > 0, "plotting its anomaly")
    assert page.count(".incident") == 1 and page.count("#anomalies .anomaly") == _ODD
    choice.clear()
    choice.send_keys("machine-07", Keys.ENTER)
    page.wait_until(lambda: page.count(".incident") == 0, "showing its incidents only")
    assert page.text("#anomalies") == "None that match."
    plot = page.find("#field canvas")  # nobody has looked at it before
    page.wait_until(
        lambda: plot.get_attribute("aria-label") != "no values yet", "plotting its last records"
    )
    choice.clear()
    choice.send_keys(Keys.ENTER)
    page.wait_until(lambda: page.count(".incident") == 1, "showing all again")
    assert page.errors() == []


def test_the_page_survives_a_restart_of_its_worker(topics, client, start_worker, page, topic_name):
    client.send(topic_name, _rows(500))
    worker = start_worker().wait_ready().wait_records(500)
    page.open().wait_state("live")
    page.wait_until(lambda: page.number("#nodes") > 0, "aware of the network")
    assert worker.terminate() == 0
    page.wait_state("disconnected")
    assert page.text("#status").startswith("disconnected since ")
    assert page.number("#nodes") > 0  # what is known stays
    start_worker().wait_ready()
    page.wait_state("live")
    client.send(topic_name, [(0, b"broken")] * 7)
    page.wait_until(lambda: page.number("#rejected-count") == 7, "up to date")


def test_one_partition_can_be_chosen(topics, client, start_worker, page, topic_name):
    client.send(topic_name, [*_rows(500), *[(1, b"broken")] * 3])
    start_worker().wait_ready().wait_records(503)
    page.open().wait_state("live")
    page.wait_until(lambda: page.number("#rejected-count") == 3, "showing both partitions")
    page.wait_until(lambda: page.count("#chosen option") == 3, "offering both partitions")
    page.find("#chosen option:nth-child(2)").click()
    page.wait_until(lambda: page.number("#rejected-count") == 0, "showing partition 0 alone")
    page.wait_until(lambda: page.number("#nodes") > 0, "showing its network")
    page.find("#chosen option:nth-child(3)").click()
    page.wait_until(lambda: page.number("#rejected-count") == 3, "showing partition 1 alone")
    assert page.number("#nodes") == 0
    assert page.errors() == []


def test_the_network_is_explored_with_keys(topics, client, start_worker, page, topic_name):
    client.send(topic_name, _rows(1000))
    start_worker().wait_ready().wait_records(1000)
    page.open().wait_state("live")
    page.wait_until(lambda: page.number("#nodes") > 0, "aware of the network")
    page.tab("network")
    page.wait_until(lambda: int(page.data("#tree", "shown") or 0) > 1, "drawn")
    tree = page.find("#tree")
    page.run("document.querySelector('#tree').focus()")
    tree.send_keys(Keys.ARROW_DOWN)  # chooses the root, which has no neighbour
    assert page.text("#details h3").endswith("sum node")
    tree.send_keys(Keys.ARROW_RIGHT)
    page.wait_until(lambda: page.text("#details dt") == "weight", "at a component")
    shown = int(page.data("#tree", "shown"))
    tree.send_keys(Keys.ARROW_LEFT, Keys.ENTER)  # closes the root
    page.wait_until(lambda: page.data("#tree", "shown") == "1", "closed")
    tree.send_keys(Keys.ENTER)
    page.wait_until(lambda: int(page.data("#tree", "shown")) == shown, "open again")
    assert page.errors() == []


def test_five_thousand_nodes_can_be_explored_while_records_flow(
    topics, client, start_worker, page, topic_name
):
    client.send(topic_name, _many_clusters(8000))
    worker = start_worker(
        learner_kind="oslrau", learner_max_nodes=5200,
        learner_oslrau="max_leaf_vars=0,min_count=1,corr_threshold=0.05",
    ).wait_ready().wait_records(8000)  # fmt: skip
    page.open().wait_state("live")
    page.wait_until(lambda: page.number("#nodes") >= 5000, "aware of the network")
    page.tab("network")
    page.wait_until(lambda: int(page.data("#tree", "shown") or 0) > 1, "drawn")
    assert int(page.data("#tree", "shown")) < 200  # at first a part of it
    page.find("#expand").click()
    page.wait_until(lambda: int(page.data("#tree", "shown")) >= 5000, "open")
    page.wait_until(lambda: page.data("#tree", "drawn") == page.data("#tree", "shown"), "drawn")
    client.send(topic_name, [(1, b"broken")] * 5)
    worker.wait_records(8005)
    tree = page.find("#tree")
    page.run("document.querySelector('#tree').scrollIntoView()")
    for step in (-30, 20, -10) * 5:  # each is answered by a picture
        ActionChains(page.browser).drag_and_drop_by_offset(tree, 0, step).perform()
    page.tab("overview")
    page.wait_until(lambda: page.number("#rejected-count") == 5, "up to date")
    page.tab("network")
    for _ in range(20):
        page.run("document.querySelector('#closer').click()")
    # Only what is in view is drawn, so that work does not grow with the network.
    page.wait_until(lambda: int(page.data("#tree", "drawn")) < 100, "close up")
    assert int(page.data("#tree", "shown")) >= 5000
    page.run("document.querySelector('#tree').focus()")
    tree.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    page.wait_until(lambda: "share of all records" in page.text("#details"), "at a node")
    assert page.errors() == []


def test_incidents_are_there_again_after_a_restart_and_can_be_searched(
    topics, client, start_worker, page, topic_name
):
    client.send(topic_name, [*_rows(3000), *_odd_rows(), *_rows(300, seed=2)])
    worker = start_worker().wait_ready().wait_records(3300 + _ODD)
    page.open().wait_state("live")
    page.wait_until(lambda: page.count(".incident") == 1, "showing the incident")
    assert worker.terminate() == 0
    start_worker().wait_ready()
    page.open().wait_state("live")
    page.errors()  # nobody answered in between
    page.wait_until(lambda: page.count(".incident") == 1, "showing the past incident")
    assert page.data(".incident", "state") == "closed"
    assert page.text(".incident li:first-child .name") == _STRANGE
    page.wait_until(
        lambda: page.text(".incident .spark").startswith(f"{_STRANGE} on average"), "drawing it"
    )
    page.wait_until(lambda: page.pixels(".incident canvas", "red") > 0, "marking the records")
    search = page.find("#filter input")
    search.send_keys("ONERROR")
    assert page.count(".incident") == 1
    search.send_keys("no such field")
    assert page.count(".incident") == 0
    assert page.text("#incidents") == "None that match."
    search.clear()
    assert page.count(".incident") == 1
    page.find("#filter [name=state] [value=open]").click()
    assert page.count(".incident") == 0
    page.find("#filter [name=state] [value=closed]").click()
    severity = page.find("#filter [name=severity]")
    severity.send_keys(page.data(".incident", "severity"))
    assert page.count(".incident") == 1
    assert page.errors() == []


def test_a_field_is_plotted_with_the_range_that_is_expected(
    topics, client, start_worker, page, topic_name
):
    client.send(topic_name, _rows(2000))
    start_worker().wait_ready().wait_records(2000)
    page.open().wait_state("live")
    page.wait_until(lambda: page.count("#field-choice option") == 3, "offering the fields")
    for seed in range(3):
        client.send(topic_name, _rows(20, seed))
        time.sleep(1)
    page.wait_until(lambda: page.pixels("#field canvas", "blue") > 0, "plotting the first field")
    label = page.find("#field canvas").get_attribute("aria-label")
    page.find("#field-choice option:nth-child(2)").click()
    page.wait_until(
        lambda: page.find("#field canvas").get_attribute("aria-label") != label, "plotting another"
    )
    page.wait_until(lambda: page.pixels("#field canvas", "blue") > 0, "plotting the second field")
    assert page.errors() == []


def test_a_forecast_is_plotted_as_the_band_behind_the_values(
    topics, client, start_worker, page, topic_name
):
    client.send(topic_name, _rows(600))
    worker = start_worker(history="10", forecasts="true").wait_ready().wait_records(600)
    page.open().wait_state("live")
    for seed in range(3):
        client.send(topic_name, _rows(20, seed))
        time.sleep(1)
    page.wait_until(lambda: page.shaded("#field canvas") > 1000, "plotting the band")
    course = orjson.loads(worker.get(f"/field?topic={topic_name}&partition=0&field=a")[1])
    assert course["expected_low"][-1] < course["expected_high"][-1]
    assert page.errors() == []


def test_all_charts_have_the_same_seconds_and_explain_their_marks(
    topics, client, start_worker, page, topic_name
):
    client.send(topic_name, _rows(300))
    start_worker().wait_ready().wait_records(300)
    page.open().wait_state("live")
    assert "incident" in page.text(".heading .legend")
    assert all(name in page.text(".charts") for name in ("scored", "lowest", "expected"))
    seconds = []
    for name in ("likelihood", "throughput", "waiting"):
        page.run(f"document.querySelector('#{name}').scrollIntoView({{block: 'center'}})")
        chart = page.find(f"#{name} canvas")
        near_now = chart.size["width"] // 2 - 20
        ActionChains(page.browser).move_to_element_with_offset(chart, near_now, 0).perform()
        page.wait_until(lambda name=name: page.count(f"#{name} .tip") == 1, "telling the second")
        seconds.append(_seconds(page.text(f"#{name} .tip b")))
    assert max(seconds) - min(seconds) < 30  # the charts move on by one a second
    assert abs(time.time() - seconds[-1]) < 30
    assert page.errors() == []


def test_large_numbers_are_legible(topics, client, start_worker, page):
    start_worker().wait_ready()
    page.open().wait_state("live")
    shown = page.browser.execute_async_script(
        "const [done] = arguments;"
        "import('/page/format.js').then((f) => done([f.figure(12345678), f.figure(123456),"
        " f.number(1.5e12), f.number(1234567), f.short(4500)]))"
    )
    assert shown == ["12.3 M", "123,456", "1.50 \N{MULTIPLICATION SIGN} 10¹²", "1,234,567", "4.5k"]
    assert page.errors() == []


def test_a_young_model_says_how_many_records_it_needs(
    topics, client, start_worker, page, topic_name
):
    client.send(topic_name, _rows(100))
    start_worker().wait_ready().wait_records(100)
    page.open().wait_state("live")
    # The second partition has none yet.
    notice = f"{topic_name}/0 needs 140 more records, and so does 1 more partition."
    page.wait_until(lambda: notice in page.text("#warm-up"), "telling that it warms up")
    client.send(topic_name, [*_rows(140), *_rows(240, partition=1)])
    page.wait_until(lambda: not page.find("#warm-up").is_displayed(), "warm")
    assert page.errors() == []


def test_nothing_is_wider_than_a_phone_and_nothing_breaks_a_rule_of_accessibility(
    topics, client, start_worker, page, topic_name
):
    rows = [(0, row[1], b"machine-%d" % (at % 3)) for at, row in enumerate(_rows(3000))]
    client.send(topic_name, [*rows, *_odd_rows(b"machine-1")])
    start_worker(entity="key").wait_ready().wait_records(3000 + _ODD)
    script = axe_core()
    page.open().wait_until(lambda: page.count(".incident") == 1, "showing the incident")
    page.find(".incident summary").click()
    page.find(".incident details a").click()
    for width in (0, _PHONE):
        page.width(width)
        for theme in ("light", "dark"):
            page.theme(theme)
            page.wait_until(lambda: page.count("#entity table") == 1, "showing the entity")
            for name in ("overview", "network"):
                page.tab(name)
                assert violations(page, script) == [], (width, theme, name)
                shown = page.run("return document.documentElement.scrollWidth")
                assert shown == (width or shown), name
            page.tab("overview")
    page.width(0)
    page.theme("light")
    assert page.errors() == []


def test_an_incident_can_be_read_and_opened_with_keys_alone(
    topics, client, start_worker, page, topic_name
):
    client.send(topic_name, [*_rows(3000), *_odd_rows()])
    start_worker().wait_ready().wait_records(3000 + _ODD)
    page.open().wait_until(lambda: page.count(".incident") == 1, "showing the incident")
    page.find("#filter [name=severity]").send_keys(Keys.TAB)  # to what stands after it
    page.browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert page.run("return document.querySelector('.incident details').open")
    page.browser.switch_to.active_element.send_keys(Keys.TAB)
    page.browser.switch_to.active_element.send_keys(Keys.ENTER)
    page.wait_until(lambda: page.count("#addressed .incident") == 1, "at its address")
    page.browser.switch_to.active_element.send_keys(Keys.TAB)  # the section has the focus
    page.browser.switch_to.active_element.send_keys(Keys.ENTER)
    page.wait_until(lambda: page.browser.current_url == f"http://{page.host}/", "back")
    assert page.errors() == []


def test_the_chart_of_an_incident_has_values_of_its_entity_alone(
    topics, client, start_worker, page, topic_name
):
    rows = [
        (0, orjson.dumps({"a": a, "b": 1000 * (at % 3) + b}), b"machine-%d" % (at % 3))
        for at, (a, b) in enumerate(np.random.default_rng(0).normal(size=(3000, 2)).tolist())
    ]
    client.send(topic_name, rows)
    worker = start_worker(entity="key").wait_ready().wait_records(3000)
    page.open().wait_state("live")
    for _ in range(3):  # seconds with records
        client.send(topic_name, rows[:3])
        time.sleep(1.1)
    client.send(topic_name, [(0, b'{"a": 0.1, "b": 1e6}', b"machine-1")] * _ODD)
    worker.wait_records(3000 + 9 + _ODD)
    page.wait_until(lambda: page.text(".incident .spark").startswith("b of machine-1, "), "drawn")
    low, high = page.text(".incident .spark").split(", ")[1].split(" to ")
    assert 900 < float(low.replace("k", "e3")) < 1100 and high == "1M"
    assert page.shaded(".incident canvas") > 100  # the band
    assert not re.search(r"\bnats\b|\bp = |for 0 s", page.text("#overview"))
    assert page.errors() == []


def test_while_a_backlog_is_read_the_charts_say_so(topics, start_worker, page):
    start_worker().wait_ready()
    page.open().wait_state("live")
    shown = page.browser.execute_async_script(
        "const [done] = arguments; import('/page/history.js').then(({ backlog }) => done(["
        "backlog({ lag: 120000, rate: 10000 }), backlog({ lag: 40000, rate: 10000 }),"
        "backlog({ lag: 3, rate: 0 }), backlog({ lag: null, rate: 0 })]))"
    )
    assert shown[0].startswith(
        "Reading a backlog: 120,000 records to go, about 12 s at the present rate."
    )
    assert shown[1:] == ["", "", ""]
    assert page.text("#backlog") == ""
    assert page.errors() == []


def _seconds(shown):
    """Return a date with a time, such as Nov 23 14:03:59 of this year, as seconds since 1970."""
    text = f"{time.localtime().tm_year} {shown}"
    return time.mktime(time.strptime(text, "%Y %b %d %H:%M:%S"))


def _many_clusters(number):
    """Rows of 30 clusters of 8 correlated fields: much structure to find."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(30, 8)) * 6
    noise = rng.normal(size=(number, 8)) @ rng.normal(size=(8, 8)) * 0.5
    rows = (centres[rng.integers(30, size=number)] + noise).round(1)
    for row in rows.tolist():
        yield 0, orjson.dumps({f"f{i}": value for i, value in enumerate(row)})
