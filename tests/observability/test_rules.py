"""The alert rules: valid, silent while all is well, firing when they should, explained."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import promql_parser
import pytest
import yaml
from dashboards import (
    DASHBOARDS,
    ROOT,
    RULES,
    alerts,
    load,
    metric_names,
    rule_expressions,
    rules,
)

from grafana import build

_WORKER = {"job": "faust-oslrau", "instance": "w1"}
_PARTITION = {**_WORKER, "topic": "t", "partition": "0"}
_OF_WORKERS = {
    *("up", "process_start_time_seconds", "oslrau_broker_silent_seconds"),
    *("oslrau_rebalances_total", "oslrau_failed_openings_total", "oslrau_waiting_partitions"),
    "oslrau_setting",
}
_MINUTES = 130

# A thousand scored records a second: values of a minute each, until minute 130.
_STEADY, _NONE = f"0+60000x{_MINUTES}", f"0+0x{_MINUTES}"


def _series(name, values, /, **labels):
    base = _WORKER if name in _OF_WORKERS else _PARTITION
    inside = ", ".join(f'{key}="{value}"' for key, value in {**base, **labels}.items())
    return f"{name}{{{inside}}}", values


def _setting(name, values):
    return _series("oslrau_setting", values, name=name)


def _records(outcome, values):
    return _series("oslrau_records_total", values, outcome=outcome)


def _log_likelihood(low, median):
    """Return quantiles of 5 and 50 %."""
    name = "oslrau_log_likelihood_quantile"
    return [_series(name, low, quantile="0.05"), _series(name, median, quantile="0.5")]


def _incidents(severity, values):
    return _series("oslrau_incidents_total", values, severity=severity)


def _open(severity, values):
    return _series("oslrau_incidents_open", values, severity=severity)


def _damaged(values):
    return _series("oslrau_snapshot_failures_total", values, kind="damaged")


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
        _series("oslrau_awaited_schemas", f"0x{_MINUTES}"),
        _series("oslrau_network_nodes", f"800x{_MINUTES}", kind="sum"),
        _series("oslrau_network_nodes", f"2800x{_MINUTES}", kind="leaf"),
        *_end_to_end(f"0+59000x{_MINUTES}"),
        *_log_likelihood(f"-12x{_MINUTES}", f"-8x{_MINUTES}"),
        _series("oslrau_broker_silent_seconds", f"1x{_MINUTES}"),
        _series("oslrau_rebalances_total", f"3x{_MINUTES}"),
        _series("oslrau_failed_openings_total", f"2x{_MINUTES}"),
        _series("oslrau_waiting_partitions", f"0x{_MINUTES}"),
        _series("oslrau_snapshot_age_seconds", f"55x{_MINUTES}"),
        _series("oslrau_drift_events_total", f"4x{_MINUTES}"),
        _series("oslrau_structure_changes_total", f"5x{_MINUTES}", kind="denied"),
        _series("oslrau_last_record_timestamp_seconds", f"0+60x{_MINUTES}"),
        _series("oslrau_silence_limit_seconds", f"300x{_MINUTES}"),
        _series("oslrau_silences_total", f"5x{_MINUTES}"),
        _series("oslrau_rate_changes_total", f"5x{_MINUTES}"),
        _series("oslrau_field_changes_total", f"5x{_MINUTES}", state="unit"),
        _incidents("minor", f"3x{_MINUTES}"),
        _incidents("major", f"2x{_MINUTES}"),
        _open("minor", f"1x{_MINUTES}"),
        _open("major", f"0x{_MINUTES}"),
        _open("critical", f"0x{_MINUTES}"),
        _damaged(f"1x{_MINUTES}"),  # long ago
        _setting("alarm_rate", f"0.002x{_MINUTES}"),
        _setting("learner.max_nodes", f"4000x{_MINUTES}"),
        _setting("snapshot_interval", f"60x{_MINUTES}"),
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
    "OslrauBrokerAway": [_series("oslrau_broker_silent_seconds", "1x118 40+60x12")],
    "OslrauRebalancing": [_series("oslrau_rebalances_total", "3x110 4+1x20")],
    "OslrauPartitionsWaiting": [_series("oslrau_waiting_partitions", "0x90 2x40")],
    "OslrauRestoreFailing": [_series("oslrau_failed_openings_total", "2x90 2+60x40")],
    "OslrauSnapshotDamaged": [_damaged("1x90 2x40")],
    "OslrauSnapshotOld": [_series("oslrau_snapshot_age_seconds", "55x110 60+60x20")],
    "OslrauNotConsuming": [
        _records("scored", "0+60000x90 5400000x40"),
        _records("rejected", "0+500x90 45000x40"),
    ],
    "OslrauSchemasAwaited": [_series("oslrau_awaited_schemas", "0x90 1x40")],
    "OslrauNoRecords": [
        _records("scored", "0+60000x90 5400000x40"),
        _records("rejected", "0+500x90 45000x40"),
        _series("oslrau_consumer_lag_records", f"0x{_MINUTES}"),
    ],
    "OslrauPartitionSilent": [
        _series("oslrau_last_record_timestamp_seconds", "0+60x110 6600x20"),
        _series("oslrau_consumer_lag_records", "200000x90 0x40"),
    ],
    "OslrauSilence": [_series("oslrau_silences_total", "5x110 6x20")],
    "OslrauRate": [_series("oslrau_rate_changes_total", "5x110 6x20")],
    "OslrauField": [_series("oslrau_field_changes_total", "5x110 6x20", state="unit")],
    "OslrauLag": [_series("oslrau_consumer_lag_records", "200000x90 20000000x40")],
    "OslrauScoresLate": _end_to_end("0+59000x90 5310000+1000x39"),
    "OslrauRecordsMissing": [
        _series("oslrau_missing_offsets_total", "0+60000x90 5400000+500000x39")
    ],
    "OslrauDeadLetters": [_records("rejected", "0+500x90 45000+1000x39")],
    "OslrauIncident": [_incidents("major", "2x117 3x13")],
    "OslrauIncidentStale": [
        _records("scored", "0+60000x90 5400000x40"),
        _records("rejected", "0+500x90 45000x40"),
    ],
    "OslrauIncidentsOften": [_incidents("minor", "3x70 4+1x59")],
    "OslrauAnomalies": [_series("oslrau_anomalies_total", "0+120x90 10800+2400x39")],
    "OslrauLogLikelihoodCollapse": _log_likelihood("-12x90 -60x40", "-8x90 -40x40"),
    "OslrauDrift": [_series("oslrau_drift_events_total", "4x110 5x20")],
    "OslrauNodeBudget": [_series("oslrau_structure_changes_total", "5x90 6+1x39", kind="denied")],
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
    "OslrauBrokerAway": [_series("oslrau_broker_silent_seconds", "1x110 25x20")],
    "OslrauRebalancing": [_series("oslrau_rebalances_total", "3x110 6x20")],
    "OslrauPartitionsWaiting": [_series("oslrau_waiting_partitions", "0x119 2x11")],
    "OslrauRestoreFailing": [_series("oslrau_failed_openings_total", "2x115 2+60x2 122x13")],
    "OslrauSnapshotDamaged": [_damaged("0x20 1x110")],
    # Half an interval late; and a minute's worth where the interval is a second.
    "OslrauSnapshotOld": [
        _series("oslrau_snapshot_age_seconds", f"90x{_MINUTES}"),
        _setting("snapshot_interval", f"1x{_MINUTES}"),
    ],
    "OslrauNotConsuming": [_records("scored", "0+60000x115 6900000x15")],
    "OslrauSchemasAwaited": [_series("oslrau_awaited_schemas", "0x119 1x11")],
    "OslrauNoRecords": [_records("scored", "0+60000x110 6600000x20")],
    # Records wait: the worker is late, not the partition silent. One silence long ago.
    "OslrauPartitionSilent": [
        _series("oslrau_last_record_timestamp_seconds", "0+60x110 6600x20"),
    ],
    "OslrauSilence": [_series("oslrau_silences_total", "5x80 6x50")],
    "OslrauRate": [_series("oslrau_rate_changes_total", "5x80 6x50")],
    "OslrauField": [_series("oslrau_field_changes_total", "5x50 6x80", state="unit")],
    "OslrauLag": [_series("oslrau_consumer_lag_records", "200000x90 280000x40")],
    "OslrauScoresLate": _end_to_end("0+59000x90 5310000+57500x39"),
    "OslrauRecordsMissing": [
        _series("oslrau_missing_offsets_total", "0+60000x90 5400000+110000x39")
    ],
    "OslrauDeadLetters": [_records("rejected", "0+500x115 57500+1000x15")],
    "OslrauIncident": [_incidents("major", "2x90 3x40")],  # one that closed long ago
    "OslrauIncidentStale": [
        _records("scored", "0+60000x110 6600000x20"),
        _records("rejected", "0+500x110 55000x20"),
    ],
    "OslrauIncidentsOften": [_incidents("minor", "3x70 4x10 5x50")],
    # A tenth of the records, of a stream so slow that these are a few dozen.
    "OslrauAnomalies": [
        _records("scored", f"0+60x{_MINUTES}"),
        _series("oslrau_anomalies_total", f"0+6x{_MINUTES}"),
    ],
    # The lowest records alone, which is for OslrauAnomalies to tell.
    "OslrauLogLikelihoodCollapse": _log_likelihood("-12x90 -60x40", "-8x90 -11x40"),
    "OslrauDrift": [_series("oslrau_drift_events_total", "4x80 5x50")],
    # A full network that grows no more, and one that grows.
    "OslrauNodeBudget": [
        _series("oslrau_network_nodes", f"3200x{_MINUTES}", kind="leaf"),
        _series("oslrau_structure_changes_total", f"0+1x{_MINUTES}", kind="mixture"),
    ],
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


def test_amtool_finds_no_fault_in_the_example_of_a_chat(tool, tmp_path):
    text = (ROOT / "docker" / "alertmanager.yml").read_text()
    activated = re.sub(r"^  # (\s*(?:- |[a-z_]+:))", r"  \1", text, flags=re.MULTILINE)
    config = yaml.safe_load(activated)
    (route,), chat = config["route"]["routes"], config["receivers"][-1]
    assert route["receiver"] == chat["name"] and chat["slack_configs"]
    (tmp_path / "alertmanager.yml").write_text(activated)
    shutil.copy(ROOT / "docker" / "oslrau.tmpl", tmp_path)
    command = [tool("amtool"), "check-config", tmp_path / "alertmanager.yml"]
    subprocess.run(command, check=True)


def _rendered(tool, template, data, tmp_path):
    """Return what Alertmanager makes of a template."""
    path = tmp_path / "data.json"
    path.write_text(json.dumps(data))
    command = [
        *(tool("amtool"), "template", "render"),
        f"--template.glob={ROOT / 'docker' / 'oslrau.tmpl'}",
        f'--template.text={{{{ template "{template}" . }}}}',
        f"--template.data={path}",
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_chat_message_says_what_since_when_and_in_which_fields(tool, tmp_path):
    labels = {"alertname": "OslrauIncident", "topic": "machines", "partition": "2"}
    annotations = {
        "description": "machines/2 has an incident.",
        "runbook_url": "docs/runbooks.md#a",
        "dashboard_url": "http://grafana/d/oslrau-model",
    }
    begun = {"startsAt": "2026-01-02T03:04:05Z", "labels": labels, "status": "firing"}
    data = {
        "status": "firing",
        "commonLabels": labels,
        "alerts": [
            {**begun, "annotations": {**annotations, "fields": "speed torque"}},
            {**begun, "annotations": annotations},
        ],
    }
    title = _rendered(tool, "oslrau.title", data, tmp_path)
    assert title == "[FIRING] OslrauIncident on machines"
    with_fields, without = _rendered(tool, "oslrau.text", data, tmp_path).splitlines()
    assert with_fields == (
        "machines/2 has an incident. Most blamed in this topic: speed torque. "
        "Since 2026-01-02 03:04:05 UTC. docs/runbooks.md#a http://grafana/d/oslrau-model"
    )
    assert "blamed" not in without


def test_a_chat_message_of_notify_says_what_is_wrong(tool, tmp_path):
    notice = {"summary": "press-7: load is high", "description": "74 records of press-7."}
    begun = {"startsAt": "2026-01-02T03:04:05Z", "labels": {"notice": "n"}, "annotations": notice}
    told = _rendered(tool, "oslrau.text", {"alerts": [begun]}, tmp_path)
    assert told == "press-7: load is high. 74 records of press-7. Since 2026-01-02 03:04:05 UTC."


def test_the_alert_of_an_incident_names_the_fields_that_were_blamed_most(tool, tmp_path):
    blamed = 'oslrau_blamed_fields_total{job="oslrau", topic="features", field="%s"}'
    labels = {"job": "oslrau", "topic": "features", "partition": "0"}
    opened = (
        'oslrau_incidents_open{job="oslrau", topic="features", partition="0", severity="major"}'
    )
    test = {
        "interval": "1m",
        "input_series": [
            {"series": opened, "values": "1x30"},
            {"series": blamed % "torque", "values": "0+2x30"},
            {"series": blamed % "speed", "values": "0+5x30"},
            {"series": blamed % "before", "values": "9x30"},
        ],
        "alert_rule_test": [
            {
                "eval_time": "20m",
                "alertname": "OslrauIncident",
                "exp_alerts": [
                    {
                        "exp_labels": {**labels, "severity": "warning"},
                        "exp_annotations": {
                            "summary": "There is a major or critical incident.",
                            "description": "features/0 has a major or critical incident.",
                            "fields": "speed torque ",
                            "runbook_url": "docs/runbooks.md#oslrauincident",
                            "dashboard_url": f"{build.GRAFANA}/d/oslrau-model"
                            "?var-topic=features&var-partition=0",
                        },
                    }
                ],
            }
        ],
    }
    content = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [test]}
    path = tmp_path / "test.yml"
    path.write_text(json.dumps(content))
    done = subprocess.run(
        [tool("promtool"), "test", "rules", path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


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
def test_an_alert_says_how_bad_what_where_and_what_to_do(alert):
    assert alert["labels"]["severity"] in {"critical", "warning", "info"}
    told = alert["annotations"]
    assert told["summary"].endswith(".") and "{{" not in told["summary"]
    assert told["description"].endswith(".")
    assert told["runbook_url"] == f"docs/runbooks.md#{alert['alert'].lower()}"
    address, _, query = told["dashboard_url"].partition("?")
    assert address in {f"{build.GRAFANA}/d/{load(path)['uid']}" for path in DASHBOARDS}
    shown = re.findall(r"var-(\w+)={{ \$labels\.(\w+) }}", query)
    named = dict.fromkeys(re.findall(r"\$labels\.(\w+)", told["description"]))
    assert shown == [(label, label) for label in named]


def test_a_copy_of_the_rules_has_other_addresses_and_is_the_same_else(tool, tmp_path):
    wiki, grafana = "https://wiki.example/oslrau", "https://grafana.example"
    copy = tmp_path / "rules.yml"
    copy.write_text(build.rules(wiki, grafana))
    subprocess.run([tool("promtool"), "check", "rules", copy], check=True)
    told = {
        rule["alert"]: rule["annotations"] for rule in rules(copy.read_text()) if "alert" in rule
    }
    assert told["OslrauNoWorker"]["runbook_url"] == f"{wiki}#oslraunoworker"
    assert told["OslrauNoWorker"]["dashboard_url"] == f"{grafana}/d/oslrau-pipeline"
    back = copy.read_text().replace(wiki, "docs/runbooks.md").replace(grafana, build.GRAFANA)
    assert rules(back) == rules()


def test_there_is_one_runbook_for_every_alert_and_no_other():
    text = (ROOT / "docs" / "runbooks.md").read_text()
    assert re.findall("^## (Oslrau.*)$", text, re.MULTILINE) == list(alerts())


def test_an_open_major_incident_fires_for_as_long_as_it_is_open(check):
    check("OslrauIncident", [_open("critical", "0x60 1x70")], fires=True)


def test_a_damaged_snapshot_found_before_the_first_look_fires_too(check):
    check("OslrauSnapshotDamaged", [_damaged("_x100 1x30")], fires=True)


def test_a_setting_moves_the_limit_with_it(check):
    doubled = _setting("alarm_rate", f"0.004x{_MINUTES}")
    check("OslrauAnomalies", [*_CASES["OslrauAnomalies"], doubled], fires=False)


def test_recorded_series_are_read_where_they_are_recorded():
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    named = {name for text in rule_expressions().values() for name in metric_names(text)}
    assert {name for name in named if ":" in name} <= recorded


def test_prometheus_scrapes_as_often_as_grafana_believes():
    scrape = yaml.safe_load(RULES.with_name("prometheus.yml").read_text())
    folder = ROOT / "grafana" / "provisioning" / "datasources"
    (source,) = yaml.safe_load((folder / "prometheus.yml").read_text())["datasources"]
    assert source["jsonData"]["timeInterval"] == scrape["global"]["scrape_interval"]
