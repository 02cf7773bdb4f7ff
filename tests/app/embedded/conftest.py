"""Fixtures of workers on the embedded broker, which needs no Java, and creates no topics."""

from dataclasses import replace

import pytest
from browser import Page, chromium
from page_scene import Scene
from worker_settings import snapshots_in


@pytest.fixture
def servers(broker):
    return broker.bootstrap_servers


@pytest.fixture
def settings(settings, tmp_path):
    folder = snapshots_in("folder", settings, tmp_path)  # the broker has no topics to compact
    return replace(settings, snapshots=folder)


@pytest.fixture
def topics(broker, settings):
    """The worker's topics, of two partitions each."""
    outputs = (settings.scores_topic, settings.anomalies_topic, settings.dead_letter_topic)
    for topic in (settings.source_topics[0], *outputs):
        broker.create_topic(topic, 2)


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture
def scene(broker, topic_name, tmp_path):
    """A deployment of the test's own."""
    scene = Scene(broker, topic_name, tmp_path)
    yield scene
    scene.workers.kill()


@pytest.fixture
def page(browser, scene):
    """The page of the scene's worker; no test may leave an error in the console."""
    seen = Page(browser, scene.port)
    seen.errors()
    seen.hosts()
    yield seen
    errors = seen.errors()
    browser.get("about:blank")
    assert errors == []
