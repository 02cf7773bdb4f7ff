"""The page for people in a real browser, while a real worker runs: numbers, charts, the network."""

import time

import numpy as np
import orjson
import pytest
from page_scene import Scene, usual_rows
from selenium.webdriver import ActionChains, Keys

pytestmark = pytest.mark.browser


def test_a_worker_that_is_not_ready_says_what_it_waits_for(scene, page):
    worker = scene.workers.start(broker="127.0.0.1:9")  # nobody answers there
    worker.wait_until(lambda: "waiting for the broker" in worker.get("/readyz")[1], "waiting")
    page.open().wait_state("waiting")
    assert page.text("#status") == "waiting for the broker and the topics"


def test_numbers_and_charts_follow_the_records(scene, page):
    scene.score([])
    page.open().wait_state("live")
    before = page.find("#throughput canvas").get_attribute("aria-label")
    assert page.pixels("#throughput canvas", "blue") == 0
    scene.send(usual_rows(100))
    # The second partition has no records yet.
    notice = f"{scene.topic}/0 needs 140 more records, and so does 1 more partition."
    page.wait_until(lambda: notice in page.text("#warm-up"), "telling that it warms up")
    scene.send([*usual_rows(500, seed=1), (1, b"broken")])
    page.wait_until(lambda: page.number("#rejected-count") == 1, "aware of the rejected record")
    page.wait_until(lambda: page.pixels("#throughput canvas", "blue") > 0, "drawing throughput")
    page.wait_until(lambda: page.pixels("#likelihood canvas", "blue") > 0, "drawing scores")
    assert page.find("#throughput canvas").get_attribute("aria-label") != before
    nodes, drawn = page.number("#nodes"), page.pixels("#throughput canvas", "blue")
    scene.send((1, *row[1:]) for row in usual_rows(600, seed=2))
    page.wait_until(lambda: page.number("#nodes") > nodes, "aware of the second network")
    page.wait_until(lambda: page.pixels("#throughput canvas", "blue") > drawn, "drawing more")
    page.wait_until(lambda: not page.find("#warm-up").is_displayed(), "warm")
    page.theme("dark")  # other colours by the same names
    page.wait_until(lambda: page.pixels("#throughput canvas", "blue") > 0, "dark")
    page.tab("network")
    page.wait_until(lambda: page.pixels("#tree", "card") > 0, "dark as well")
    page.theme("light")


def test_five_thousand_nodes_can_be_explored_while_records_flow(scene, page):
    worker = scene.score(
        _many_clusters(8000), learner_max_nodes=5200,
        learner_oslrau="max_leaf_vars=0,min_count=1,corr_threshold=0.05",
    )  # fmt: skip
    page.open().wait_state("live")
    page.wait_until(lambda: page.number("#nodes") >= 5000, "aware of the network")
    page.tab("network")
    page.wait_until(lambda: int(page.data("#tree", "shown") or 0) > 1, "drawn")
    assert int(page.data("#tree", "shown")) < 200  # at first a part of it
    page.find("#expand").click()
    page.wait_until(lambda: int(page.data("#tree", "shown")) >= 5000, "open")
    page.wait_until(lambda: page.data("#tree", "drawn") == page.data("#tree", "shown"), "drawn")
    scene.score_more(worker, [(1, b"broken")] * 5)
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


def _many_clusters(number):
    """Rows of 30 clusters of 8 correlated fields: much structure to find."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(30, 8)) * 6
    noise = rng.normal(size=(number, 8)) @ rng.normal(size=(8, 8)) * 0.5
    rows = (centres[rng.integers(30, size=number)] + noise).round(1)
    for row in rows.tolist():
        yield 0, orjson.dumps({f"f{i}": value for i, value in enumerate(row)})


class TestOfOneWorker:
    """Looks at a worker that has done with 2,000 rows, and with three of partition 1."""

    @pytest.fixture(scope="class")
    @classmethod
    def scene(cls, broker, tmp_path_factory):
        scene = Scene(broker, "of-one-worker", tmp_path_factory.mktemp("page"))
        rows = [*usual_rows(2000), *[(1, b"broken")] * 3]
        scene.worker = scene.score(rows, history="10", forecasts="true")
        yield scene
        scene.workers.kill()

    @pytest.fixture
    def page(self, page):
        return page.open().wait_state("live")

    def test_it_asks_nobody_but_its_worker(self, page):
        page.wait_until(lambda: page.number("#nodes") > 0, "aware of the network")
        assert page.hosts() == {page.host}

    def test_one_partition_can_be_chosen(self, page):
        page.wait_until(lambda: page.number("#rejected-count") == 3, "showing both partitions")
        page.wait_until(lambda: page.count("#chosen option") == 3, "offering both partitions")
        page.find("#chosen option:nth-child(2)").click()
        page.wait_until(lambda: page.number("#rejected-count") == 0, "showing partition 0 alone")
        page.wait_until(lambda: page.number("#nodes") > 0, "showing its network")
        page.find("#chosen option:nth-child(3)").click()
        page.wait_until(lambda: page.number("#rejected-count") == 3, "showing partition 1 alone")
        assert page.number("#nodes") == 0

    def test_the_network_is_explored_with_keys(self, page):
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

    def test_a_field_is_plotted_with_the_range_that_is_expected(self, scene, page):
        page.wait_until(lambda: page.count("#field-choice option") == 3, "offering the fields")
        for seed in range(3):
            scene.send(usual_rows(20, seed))
            time.sleep(1)
        plot = page.find("#field canvas")
        page.wait_until(lambda: page.pixels("#field canvas", "blue") > 0, "plotting values")
        page.wait_until(lambda: page.pixels("#field canvas", "blue-soft") > 1000, "and the band")
        place = f"topic={scene.topic}&partition=0&field=a"
        course = orjson.loads(scene.worker.get(f"/field?{place}")[1])
        assert course["expected_low"][-1] < course["expected_high"][-1]
        label = plot.get_attribute("aria-label")
        page.find("#field-choice option:nth-child(2)").click()
        page.wait_until(lambda: plot.get_attribute("aria-label") != label, "plotting another")
        page.wait_until(lambda: page.pixels("#field canvas", "blue") > 0, "plotting the second one")

    def test_all_charts_have_the_same_seconds_and_explain_their_marks(self, page):
        assert "incident" in page.text(".heading .legend")
        assert all(name in page.text(".charts") for name in ("scored", "lowest", "expected"))
        seconds = []
        for name in ("likelihood", "throughput", "waiting"):
            page.run(f"document.querySelector('#{name}').scrollIntoView({{block: 'center'}})")
            chart = page.find(f"#{name} canvas")
            near_now = chart.size["width"] // 2 - 20
            ActionChains(page.browser).move_to_element_with_offset(chart, near_now, 0).perform()
            page.wait_until(lambda name=name: page.count(f"#{name} .tip") == 1, "telling a second")
            seconds.append(_seconds(page.text(f"#{name} .tip b")))
        assert max(seconds) - min(seconds) < 30  # the charts move on by one a second
        assert abs(time.time() - seconds[-1]) < 30

    @pytest.mark.parametrize(
        ("module", "calls", "shown"),
        [
            ("format", "figure(12345678), m.figure(123456), m.number(1.5e12), m.number(1234567)",
             ["12.3 M", "123,456", "1.50 \N{MULTIPLICATION SIGN} 10¹²", "1,234,567"]),
            ("format", "short(4500), m.moment(1.79e15), m.moment(null)",
             ["4.5k", *2 * "\N{EN DASH}"]),
            ("history", "backlog({ lag: 120000, rate: 10000 }).slice(0, 73)",
             ["Reading a backlog: 120,000 records to go, about 12 s at the present rate."]),
            ("history", "backlog({ lag: 40000, rate: 10000 }), m.backlog({ lag: null, rate: 0 })",
             ["", ""]),
        ],
    )  # fmt: skip
    def test_numbers_times_and_backlogs_are_legible(self, page, module, calls, shown):
        script = f"import('/page/{module}.js').then((m) => arguments[0]([m.{calls}]))"
        assert page.browser.execute_async_script(script) == shown
        assert page.text("#backlog") == ""


def _seconds(shown):
    """Return a date with a time, such as Nov 23 14:03:59 of this year, as seconds since 1970."""
    text = f"{time.localtime().tm_year} {shown}"
    return time.mktime(time.strptime(text, "%Y %b %d %H:%M:%S"))
