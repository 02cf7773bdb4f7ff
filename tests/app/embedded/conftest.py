"""Fixtures of workers on the embedded broker, which needs no Java, and creates no topics."""

from __future__ import annotations

from dataclasses import replace

import pytest


@pytest.fixture
def servers(broker):
    return broker.bootstrap_servers


@pytest.fixture
def settings(settings):
    return replace(settings, snapshots="folder")  # the broker has no topics to compact


@pytest.fixture
def topics(broker, settings):
    """The worker's topics, of two partitions each."""
    outputs = (settings.scores_topic, settings.anomalies_topic, settings.dead_letter_topic)
    for topic in (settings.source_topics[0], *outputs):
        broker.create_topic(topic, 2)
