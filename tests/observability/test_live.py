"""A real Prometheus scrapes a worker that reads a real Kafka."""

import re

import promql_parser
import pytest
from dashboards import expressions, filled_in, hurried, metric_names, operands
from servers import firing, wait_for

pytestmark = pytest.mark.real_kafka

_PANELS = expressions("panels")
_CONDITIONS = expressions("rules") | expressions("annotations")
_RECORDED = {name for name in _CONDITIONS if ":" in name}
# Prometheus itself makes these.
_OF_PROMETHEUS = {"up", "ALERTS"}
# What these look for is not there while all is well.
_EMPTY = {"OslrauNoWorker": "absent() has nothing to say while a worker answers"}


def _conditions():
    """Return what alerts and annotations compare, part by part, by their names."""
    for name, expression in _CONDITIONS.items():
        if name not in _EMPTY:
            for number, part in enumerate(operands(promql_parser.parse(hurried(expression)))):
                yield pytest.param(part.prettify(), id=f"{name}-{number}")


def test_every_metric_that_a_dashboard_or_rule_names_is_on_the_page(observed):
    looked_at = [*_PANELS.values(), *_CONDITIONS.values()]
    named = {name for expression in looked_at for name in metric_names(expression)}
    expected = named - _RECORDED - _OF_PROMETHEUS

    def exposed():
        _, page = observed.worker.get("/metrics")
        return {line.split("{")[0].split(" ")[0] for line in page.splitlines()}

    # some tell of what is known after some records only
    wait_for(f"metrics {expected - exposed()}", lambda: expected <= exposed())


@pytest.mark.parametrize("expression", _PANELS.values(), ids=_PANELS)
def test_every_panel_shows_data(observed, expression):
    wait_for(f"data of {expression}", lambda: observed.prometheus.query(expression))


@pytest.mark.parametrize("expression", list(_conditions()))
def test_every_part_of_every_alert_and_annotation_sees_data(observed, expression):
    wait_for(f"data of {expression}", lambda: observed.prometheus.query(filled_in(expression)))


def test_the_live_dead_letters_raise_their_alert_and_alertmanager_passes_it_on(observed):
    (alert, *_) = wait_for("alert", lambda: firing(observed.webhook, "OslrauDeadLetters"))
    told = alert["annotations"]["description"]
    # One record in 97, about: what Prometheus sees of it depends on when it looks.
    assert re.fullmatch(r"\d+(\.\d+)?% of the records of observed-\w+ are rejected\.", told)


def test_a_killed_worker_raises_its_alerts(observed):
    # Prometheus looks before the worker answers, and may not get an answer from a busy one.
    down = 'ALERTS{alertname="OslrauWorkerDown"}'
    wait_for("peace", lambda: not observed.prometheus.query(down))
    observed.webhook.bodies.clear()
    observed.worker.kill()
    wait_for("alert", lambda: firing(observed.webhook, "OslrauWorkerDown"))
    wait_for("alert", lambda: firing(observed.webhook, "OslrauNoWorker"))
