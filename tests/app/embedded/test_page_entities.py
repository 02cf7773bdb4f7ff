"""Entities on the page for people, in a real browser while a real worker runs."""

import re
import time

import numpy as np
import orjson
import pytest
from page_scene import ODD, STRANGE, odd_rows, usual_rows
from selenium.webdriver import Keys

pytestmark = pytest.mark.browser


def test_an_anomaly_shows_its_fields_and_its_entity_with_what_is_usual_for_it(scene, page):
    keys = [STRANGE.encode(), STRANGE.encode(), b"saw"]
    worker = scene.score(usual_rows(3000, keys=keys), entity="key")
    page.open().wait_state("live")
    odd = orjson.dumps({"a": 0.1, "b": 0.1, STRANGE: 500})
    scene.score_more(worker, [(0, odd, STRANGE.encode())])
    anomaly = "#anomalies .anomaly:first-child"
    page.wait_until(lambda: "offset 3000" in page.text(f"{anomaly} h3"), "showing the anomaly")
    assert page.text(f"{anomaly} h3").endswith(f"key {STRANGE}")
    assert page.text(f"{anomaly} li:first-child .name") == STRANGE  # the one to blame on top
    assert "500" in page.text(f"{anomaly} li:first-child .value")
    page.wait_until(lambda: page.number("#anomaly-count") >= 1, "counting it")
    page.wait_until(lambda: page.count("#alarming button") > 0, "listing the entity")
    assert page.text("#alarming button") == STRANGE
    page.find("#alarming button").click()
    page.wait_until(lambda: page.count("#entity table tr") == 4, "showing its fields")
    assert STRANGE in page.text("#entity h3")
    # A name from outside is a text, and nothing of it runs.
    assert page.count(".anomaly img, #details img, option img, #entity img") == 0


def test_an_entity_unlike_all_others_is_listed_with_what_differs_and_by_how_much(scene, page):
    a, b = np.random.default_rng(0).normal(size=(2, 7200))
    a[3::24] += 40  # one of 24 machines
    rows = [
        (0, orjson.dumps({"a": x, "b": y}), b"machine-%02d" % (at % 24))
        for at, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True))
    ]
    scene.score(rows, entity="key")
    page.open().wait_until(lambda: page.count("#unusual button") == 1, "listing the entity")
    said = r"machine-03 .*/0 · unusual: a is around 40(\.\d)?, usual \S+, \d+ times as far from .*"
    assert re.fullmatch(said, page.text("#unusual"))


def test_entities_that_have_stopped_are_listed_until_they_return(scene, page):
    began = 1000 * int(time.time()) - 1000 * 900

    def of(seconds, devices):
        return [
            (0, b'{"a": %d}' % (i % 7), b"%d" % (i % devices), (), began + 1000 * i)
            for i in seconds
        ]

    events = "records,incidents,unusual_entities,silences"
    worker = scene.score([*of(range(300), 3), *of(range(300, 600), 2)], entity="key", events=events)
    page.open().wait_state("live")
    page.wait_until(lambda: page.count("#silent button") == 1, "listing the silent entity")
    assert page.text("#silent button") == "2" and "usual up to" in page.text("#silent")
    scene.score_more(worker, of(range(600, 610), 3))
    page.wait_until(lambda: page.count("#silent button") == 0, "listing none")


def test_an_entity_that_brings_fewer_records_is_listed_until_it_is_over(scene, page):
    began = 60_000 * (int(time.time()) // 60 - 60)

    def of(minutes, number):
        return [
            (0, b'{"a": %d}' % (i % 7), device, (), began + 60_000 * minute + 200 * i)
            for minute in minutes
            for i in range(150)
            for device, n in ((b"pump", number), (b"saw", 150))
            if i < n
        ]

    worker = scene.score([*of(range(30), 150), *of(range(30, 33), 20)], entity="key", rates="1m")
    page.open().wait_state("live")
    page.wait_until(lambda: "pump" in page.text("#changed-rates"), "listing the entity")
    assert "about 0.2 times as many records as usual since" in page.text("#changed-rates")
    scene.score_more(worker, of(range(33, 45), 150))
    page.wait_until(lambda: page.text("#changed-rates") == "None at present.", "listing none")


def test_one_of_many_entities_can_be_found_and_shows_its_field_and_its_incidents(scene, page):
    names = [b"machine-%02d" % number for number in range(60)]
    worker = scene.score(usual_rows(6000, keys=names), entity="key")
    page.open().wait_state("live")
    scene.score_more(worker, odd_rows(b"machine-42"))
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
    page.wait_until(lambda: page.text("#entity-note") == f"in {scene.topic}/0", "choosing it")
    assert choice.get_attribute("value") == "machine-42"
    page.wait_until(lambda: "machine-42" in page.text("#entity h3"), "showing what is usual for it")
    assert page.text("#field-place").startswith("of machine-42")
    page.wait_until(lambda: page.pixels("#field canvas", "red") > 0, "plotting its anomaly")
    assert page.count(".incident") == 1 and page.count("#anomalies .anomaly") == ODD
    choice.clear()
    choice.send_keys("machine-07", Keys.ENTER)
    page.wait_until(lambda: page.count(".incident") == 0, "showing its incidents only")
    assert page.text("#anomalies") == "None that match."
    plot = page.find("#field canvas")  # nobody has looked at it before
    has_values = lambda: plot.get_attribute("aria-label") != "no values yet"  # noqa: E731
    page.wait_until(has_values, "plotting its last records")
    choice.clear()
    choice.send_keys(Keys.ENTER)
    page.wait_until(lambda: page.count(".incident") == 1, "showing all again")
