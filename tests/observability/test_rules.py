"""The alert rules: valid, silent while all is well, firing when they should, explained."""

from __future__ import annotations

import json
import re
import subprocess

import promql_parser
import pytest
import yaml
from dashboards import ROOT, RULES, alerts, metric_names, rule_expressions, rules

_WORKER = {"job": "faust-oslrau", "instance": "w1"}
_PARTITION = {**_WORKER, "topic": "t", "partition": "0"}
_MINUTES = 130

# A thousand scored records a second: values of a minute each, until minute 130.
_STEADY, _NONE = f"0+60000x{_MINUTES}", f"0+0x{_MINUTES}"


def _series(name, values, **labels):
    base = _WORKER if name in ("up", "process_start_time_seconds") else _PARTITION
    inside = ", ".join(f'{key}="{value}"' for key, value in {**base, **labels}.items())
    return f"{name}{{{inside}}}", values


def _records(outcome, values):
    return _series("oslrau_records_total", values, outcome=outcome)


def _log_likelihood(**buckets):
    """Return a histogram of 60,000 records a minute, of which so many are below each bound."""
    bounds = {"below_minus_20": "-20.0", "below_minus_10": "-10.0", "below_0": "0.0"}
    return [
        *(_series("oslrau_log_likelihood_bucket", buckets[n], le=le) for n, le in bounds.items()),
        _series("oslrau_log_likelihood_bucket", _STEADY, le="+Inf"),
    ]


def _end_to_end(below_a_minute):
    return [
        _series("oslrau_end_to_end_seconds_bucket", below_a_minute, le="60.0"),
        _series("oslrau_end_to_end_seconds_bucket", _STEADY, le="300.0"),
        _series("oslrau_end_to_end_seconds_bucket", _STEADY, le="+Inf"),
    ]


_HEALTHY = dict(
    [
        _series("up", f"1x{_MINUTES}"),
        _series("process_start_time_seconds", f"1000x{_MINUTES}"),
        _records("scored", _STEADY),
        _records("rejected", f"0+500x{_MINUTES}"),
        _series("oslrau_missing_offsets_total", _STEADY),  # a mark of a transaction each
        _series("oslrau_anomalies_total", f"0+120x{_MINUTES}"),
        _series("oslrau_consumer_lag_records", f"200000x{_MINUTES}"),
        _series("oslrau_network_nodes", f"400x{_MINUTES}", kind="sum"),
        _series("oslrau_network_nodes", f"1400x{_MINUTES}", kind="leaf"),
        *_end_to_end(f"0+59000x{_MINUTES}"),
        *_log_likelihood(
            below_minus_20=f"0+1000x{_MINUTES}",
            below_minus_10=f"0+6000x{_MINUTES}",
            below_0=f"0+59000x{_MINUTES}",
        ),
    ]
)

# From minute 90 on; the tests look at minute 120.
_CASES = {
    "OslrauWorkerDown": [_series("up", "1x90 0x40")],
    "OslrauNoWorker": [_series("up", "1x90")],
    "OslrauWorkerRestarts": [_series("process_start_time_seconds", "1000x90 2000+180x39")],
    "OslrauNothingAssigned": [
        _records("scored", "0+60000x90"),
        _records("rejected", "0+500x90"),
    ],
    "OslrauNotConsuming": [
        _records("scored", "0+60000x90 5400000x40"),
        _records("rejected", "0+500x90 45000x40"),
    ],
    "OslrauNoRecords": [
        _records("scored", "0+60000x90 5400000x40"),
        _records("rejected", "0+500x90 45000x40"),
        _series("oslrau_consumer_lag_records", f"0x{_MINUTES}"),
    ],
    "OslrauLag": [_series("oslrau_consumer_lag_records", "200000x90 20000000x40")],
    "OslrauScoresLate": _end_to_end("0+59000x90 5310000+1000x39"),
    "OslrauRecordsMissing": [
        _series("oslrau_missing_offsets_total", "0+60000x90 5400000+500000x39")
    ],
    "OslrauDeadLetters": [_records("rejected", "0+500x90 45000+1000x39")],
    "OslrauAnomalies": [_series("oslrau_anomalies_total", "0+120x90 10800+1200x39")],
    "OslrauLogLikelihoodCollapse": _log_likelihood(
        below_minus_20="0+1000x90 90000+40000x39",
        below_minus_10="0+6000x90 540000+50000x39",
        below_0=f"0+59000x{_MINUTES}",
    ),
    "OslrauNodeBudget": [_series("oslrau_network_nodes", "1400x90 1590x40", kind="leaf")],
}

# Bad for a moment, or a little: no reason to call anybody.
_NEARLY = {
    "OslrauWorkerDown": [_series("up", "1x119 0x10")],
    "OslrauNoWorker": [_series("up", "1x119 _x10")],
    "OslrauWorkerRestarts": [_series("process_start_time_seconds", "1000x90 2000x40")],
    "OslrauNothingAssigned": [
        _records("scored", "0+60000x110"),
        _records("rejected", "0+500x110"),
    ],
    "OslrauNotConsuming": [_records("scored", "0+60000x115 6900000x15")],
    "OslrauNoRecords": [_records("scored", "0+60000x110 6600000x20")],
    "OslrauLag": [_series("oslrau_consumer_lag_records", "200000x90 280000x40")],
    "OslrauScoresLate": _end_to_end("0+59000x90 5310000+57500x39"),
    "OslrauRecordsMissing": [
        _series("oslrau_missing_offsets_total", "0+60000x90 5400000+110000x39")
    ],
    "OslrauDeadLetters": [_records("rejected", "0+500x115 57500+1000x15")],
    # A tenth of the records, of a stream so slow that these are a few dozen.
    "OslrauAnomalies": [
        _records("scored", f"0+60x{_MINUTES}"),
        _series("oslrau_anomalies_total", f"0+6x{_MINUTES}"),
    ],
    # Every third record, which is for OslrauAnomalies to tell.
    "OslrauLogLikelihoodCollapse": _log_likelihood(
        below_minus_20="0+1000x90 90000+20000x39",
        below_minus_10="0+6000x90 540000+20000x39",
        below_0=f"0+59000x{_MINUTES}",
    ),
    "OslrauNodeBudget": [_series("oslrau_network_nodes", "1400x90 1490x40", kind="leaf")],
}


@pytest.fixture
def check(tool, tmp_path):
    """Let promtool say whether an alert fires at minute 120, with other series in places."""

    def run(alert, changed, fires):
        series = {**_HEALTHY, **dict(changed)}
        test = {
            "interval": "1m",
            "input_series": [{"series": name, "values": series[name]} for name in series],
            "promql_expr_test": [
                {
                    "expr": f'count(ALERTS{{alertname=~"{alert}", alertstate="firing"}})',
                    "eval_time": "120m",
                    "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
                }
            ],
        }
        content = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [test]}
        path = tmp_path / "test.yml"
        path.write_text(json.dumps(content))  # which is YAML as well
        command = [tool("promtool"), "test", "rules", path]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    return run


def test_promtool_finds_no_fault_in_the_configuration(tool):
    config = RULES.with_name("prometheus.yml")
    subprocess.run([tool("promtool"), "check", "config", config], check=True)


def test_amtool_finds_no_fault_in_the_configuration(tool):
    config = ROOT / "docker" / "alertmanager.yml"
    subprocess.run([tool("amtool"), "check-config", config], check=True)


@pytest.mark.parametrize("expression", rule_expressions().values(), ids=rule_expressions())
def test_an_expression_parses(expression):
    promql_parser.parse(expression)


def test_all_alerts_are_silent_while_all_is_well(check):
    check(".+", [], fires=False)


@pytest.mark.parametrize("alert", alerts())
def test_an_alert_is_silent_about_what_is_short_or_small(alert, check):
    check(alert, _NEARLY[alert], fires=False)


@pytest.mark.parametrize("alert", alerts())
def test_an_alert_fires(alert, check):
    check(alert, _CASES[alert], fires=True)


@pytest.mark.parametrize("alert", alerts().values(), ids=alerts())
def test_an_alert_says_how_bad_what_and_what_to_do(alert):
    assert alert["labels"]["severity"] in {"critical", "warning", "info"}
    assert alert["annotations"]["summary"].endswith(".")
    assert alert["annotations"]["runbook"] == f"docs/runbooks.md#{alert['alert'].lower()}"


def test_there_is_a_runbook_for_every_alert_and_none_besides():
    text = (ROOT / "docs" / "runbooks.md").read_text()
    assert re.findall("^## (Oslrau.*)$", text, re.MULTILINE) == list(alerts())


def test_recorded_series_are_read_where_they_are_recorded():
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    named = {name for text in rule_expressions().values() for name in metric_names(text)}
    assert {name for name in named if ":" in name} <= recorded


def test_prometheus_scrapes_as_often_as_grafana_believes():
    scrape = yaml.safe_load(RULES.with_name("prometheus.yml").read_text())
    folder = ROOT / "grafana" / "provisioning" / "datasources"
    (source,) = yaml.safe_load((folder / "prometheus.yml").read_text())["datasources"]
    assert source["jsonData"]["timeInterval"] == scrape["global"]["scrape_interval"]
