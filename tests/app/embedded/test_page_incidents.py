"""Anomalies and incidents on the page for people, in a real browser while a real worker runs."""

import re
import time

import numpy as np
import orjson
import pytest
from axe import axe_core, violations
from page_scene import ODD, STRANGE, Scene, odd_rows, usual_rows
from selenium.webdriver import Keys

pytestmark = pytest.mark.browser

_PHONE = 360


def test_an_anomaly_says_which_category_the_other_fields_suggest(scene, page):
    rng = np.random.default_rng(0)
    rows = [{"a": a, "service": "search"} for a in rng.normal(size=3000).tolist()]
    worker = scene.score([(0, orjson.dumps(row)) for row in rows], alarm_rate=0.005)
    page.open().wait_state("live")
    scene.score_more(worker, [(0, orjson.dumps({"a": 0.1, "service": STRANGE}))])
    first = "#anomalies .anomaly:first-child li:first-child"
    page.wait_until(lambda: page.count(first) and page.text(f"{first} .name") == "service", "told")
    told = page.text(f"{first} .value")
    suggested = r"the other fields suggest search \((9[5-9]|100) %\)"
    assert re.fullmatch(rf"is {re.escape(STRANGE)} \(0\.0\d %\), {suggested}", told), told
    assert page.count(".anomaly img") == 0
    offered = page.run(
        "return [...document.querySelectorAll('#field-choice option')].map((o) => o.value)"
    )
    assert "service" not in offered and "a" in offered  # only numbers have a course


def test_an_incident_is_shown_as_it_opens_and_closes_and_again_after_a_restart(scene, page):
    worker = scene.score(usual_rows(3000))
    page.open().wait_state("live")
    assert page.text("#incidents") == "None so far."
    scene.score_more(worker, odd_rows())
    title = "#incidents .incident h3"
    page.wait_until(lambda: page.count(title) == 1, "showing the incident")
    assert re.fullmatch(r"(minor|major|critical) open(, unusual for \d+ s)?", page.text(title))
    assert re.search(rf"{scene.topic}/0 · \d+ records, ", page.text("#incidents .incident p"))
    assert page.number("#open-incidents") == 1
    assert page.text("#incidents li:first-child .name") == STRANGE
    scene.score_more(worker, usual_rows(300, seed=2))
    page.wait_until(lambda: "closed" in page.text(title), "showing that it closed")
    page.wait_until(lambda: page.number("#open-incidents") == 0, "aware that it closed")
    assert page.count(title) == 1 and page.count("#incidents img") == 0
    assert page.errors() == []

    assert worker.terminate() == 0
    page.wait_state("disconnected")
    assert page.text("#status").startswith("disconnected since ")
    assert page.number("#nodes") > 0  # what is known stays
    scene.score([(0, b"broken")] * 7)
    page.wait_state("live")
    page.wait_until(lambda: page.number("#rejected-count") == 7, "up to date")
    page.open().wait_state("live")
    page.errors()  # nobody answered in between
    page.wait_until(lambda: page.count(".incident") == 1, "showing the past incident")
    assert page.data(".incident", "state") == "closed"
    assert page.text(".incident li:first-child .name") == STRANGE
    drawn = f"{STRANGE} on average"
    page.wait_until(lambda: page.text(".incident .spark").startswith(drawn), "drawing it")
    page.wait_until(lambda: page.pixels(".incident canvas", "red") > 0, "marking the records")
    _search(page)


def test_an_incident_is_shown_though_its_timestamps_are_in_nanoseconds(scene, page):
    rows = [*usual_rows(3000), *odd_rows()]
    scene.score((*row, (), 1_700_000_000_000_000_000) for row in rows)
    page.open().wait_until(lambda: page.count(".incident") == 1, "showing the incident")
    assert page.text(".incident p").startswith("since \N{EN DASH} · ")


def test_an_incident_whose_model_is_gone_closes_without_another_record(scene, page):
    worker = scene.score([*usual_rows(3000), *odd_rows()])
    page.open().wait_until(lambda: page.number("#open-incidents") == 1, "showing the incident")
    page.find(".incident summary").click()
    page.find(".incident details a").click()
    page.wait_until(lambda: page.data("#addressed .incident", "state") == "open", "at its address")
    assert worker.terminate() == 0
    scene.workers.start(app_id=f"{scene.topic}-new", start="latest").wait_ready()
    page.wait_state("live")
    page.wait_until(lambda: page.number("#open-incidents") == 0, "aware that it closed")
    page.wait_until(lambda: page.data("#addressed .incident", "state") == "closed", "there, too")
    page.errors()  # nobody answered in between


def _search(page):
    """Find the incident by a part of its field's name, by its state and by its severity."""
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


def test_the_chart_of_an_incident_has_values_of_its_entity_alone(scene, page):
    rows = [
        (0, orjson.dumps({"a": a, "b": 1000 * (at % 3) + 20 * b}), b"machine-%d" % (at % 3))
        for at, (a, b) in enumerate(np.random.default_rng(0).normal(size=(3000, 2)).tolist())
    ]
    worker = scene.score(rows, entity="key")
    page.open().wait_state("live")
    for _ in range(3):  # seconds with records
        scene.send(rows[:3])
        time.sleep(1.1)
    scene.score_more(worker, [(0, b'{"a": 0.1, "b": 5e3}', b"machine-1")] * 2 * ODD)
    page.wait_until(lambda: page.text(".incident .spark").startswith("b of machine-1, "), "drawn")
    low, high = page.text(".incident .spark").split(", ")[1].split(" to ")
    assert 900 < float(low.replace("k", "e3")) < 1100 and high == "5k"
    # The band is what was expected during the incident, not what is of the next record.
    page.wait_until(lambda: page.columns(".incident canvas", "blue-band") > 0, "a band")
    assert page.columns(".incident canvas", "blue-band") < 0.8
    assert "record" not in page.text(".incident p")  # those from start to end are of all machines
    assert not re.search(r"\bnats\b|\bp = |for 0 s", page.text("#overview"))


def test_the_chart_of_a_field_is_shaded_in_incidents_of_the_chosen_entity_alone(scene, page):
    def is_shaded(chart):
        return page.pixels(f"#{chart} canvas", "red-soft") > 0

    def choose(name):
        page.find("#entity-name").clear()
        page.find("#entity-name").send_keys(name, Keys.ENTER)
        page.wait_until(lambda: page.text("#field-place").startswith(f"of {name}"), "chosen")

    worker = scene.score(usual_rows(3000, keys=[b"saw", b"drill"]), entity="key")
    page.open().wait_state("live")
    scene.score_more(worker, odd_rows(b"saw"))
    page.wait_until(lambda: is_shaded("throughput"), "shading what is of all")
    choose("drill")
    page.wait_until(lambda: not is_shaded("field"), "without a shade")
    choose("saw")
    page.wait_until(lambda: is_shaded("field"), "shading it")
    assert is_shaded("throughput")


class TestOfOneWorker:
    """Looks at a worker that has an incident of an entity with an odd name."""

    ENTITIES = (b"machine 0/%", b"machine 1/%", b"machine 2/%")

    @pytest.fixture(scope="class")
    @classmethod
    def scene(cls, broker, tmp_path_factory):
        scene = Scene(broker, "of-one-incident", tmp_path_factory.mktemp("page"))
        rows = usual_rows(3000, keys=list(cls.ENTITIES))
        scene.score([*rows, *odd_rows(cls.ENTITIES[1])], entity="key")
        yield scene
        scene.workers.kill()

    @pytest.fixture
    def page(self, page):
        page.open().wait_until(lambda: page.count(".incident") == 1, "showing the incident")
        return page

    def test_its_address_opens_it_with_its_entity_and_its_field_by_keys_alone(self, scene, page):
        def press(*keys):
            for key in keys:
                page.browser.switch_to.active_element.send_keys(key)

        assert not page.find("#addressed").is_displayed()
        page.find("#filter [name=severity]").send_keys(Keys.TAB)  # to what stands after it
        press(Keys.ENTER)
        assert page.run("return document.querySelector('.incident details').open")
        press(Keys.TAB, Keys.ENTER)
        page.wait_until(lambda: page.count("#addressed .incident") == 1, "at its address")
        address = f"http://{page.host}/incidents/{scene.topic}/0/30"
        assert page.browser.current_url.startswith(address)
        assert page.text("#addressed h2") == f"Incident {page.text('#addressed details a')}"
        assert page.text("#elsewhere") == ""
        assert page.run("return document.activeElement.id") == "addressed"
        name, field = page.find("#entity-name"), page.find("#field-choice")
        entity = self.ENTITIES[1].decode()
        page.wait_until(lambda: name.get_attribute("value") == entity, "choosing it")
        page.wait_until(lambda: field.get_attribute("value") == STRANGE, "choosing its field")
        press(Keys.TAB, Keys.ENTER)
        page.wait_until(lambda: page.browser.current_url == f"http://{page.host}/", "back")

    def test_nothing_is_wider_than_a_phone_and_nothing_breaks_a_rule_of_accessibility(self, page):
        script = axe_core()
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
