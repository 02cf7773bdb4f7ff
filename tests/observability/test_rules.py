"""The alert rules: valid, silent while all is well, firing when they should, explained."""

import json
import re
import shutil
import subprocess

import pytest
import yaml
from alert_cases import FIRING, HEALTHY, MINUTES, SILENT, damaged, open_incidents, setting
from dashboards import DASHBOARDS, ROOT, RULES, alerts, load, rules

from grafana import build


@pytest.fixture
def promtool(tool, tmp_path):
    """Let promtool run a test of the groups of rules."""

    def run(groups, test):
        (tmp_path / "rules.yml").write_text(json.dumps({"groups": groups}))  # which is YAML as well
        content = {"rule_files": ["rules.yml"], "evaluation_interval": "1m"}
        path = tmp_path / "test.yml"
        path.write_text(json.dumps(content | {"tests": [{"interval": "1m", **test}]}))
        command = [tool("promtool"), "test", "rules", path]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    return run


def _groups():
    return yaml.safe_load(RULES.read_text())["groups"]


@pytest.fixture
def check(promtool):
    """Let promtool say whether an alert fires at minute 120, with other series in places."""

    def run(alert, changed, fires):
        series = {**HEALTHY, **dict(changed)}
        expression = f'count(ALERTS{{alertname=~"{alert}", alertstate="firing"}})'
        samples = [{"labels": "{}", "value": 1}] if fires else []
        test = {
            "input_series": [{"series": name, "values": series[name]} for name in series],
            "promql_expr_test": [{"expr": expression, "eval_time": "120m", "exp_samples": samples}],
        }
        # Only the rules in question: all of them take half a second.
        groups = _groups()
        for group in groups:
            group["rules"] = [
                of for of in group["rules"] if "record" in of or re.fullmatch(alert, of["alert"])
            ]
        promtool(groups, test)

    return run


@pytest.mark.parametrize(
    ("program", "check", "config"),
    [("promtool", ("check", "config"), RULES.with_name("prometheus.yml")),
     ("amtool", ("check-config",), ROOT / "docker" / "alertmanager.yml")],
)  # fmt: skip
def test_its_own_tool_finds_no_fault_in_a_configuration(program, check, config, tool):
    subprocess.run([tool(program), *check, config], check=True)


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
    told = [{**begun, "annotations": each} for each in (
        {**annotations, "fields": "speed torque"}, annotations)]  # fmt: skip
    data = {"status": "firing", "commonLabels": labels, "alerts": told}
    title = _rendered(tool, "oslrau.title", data, tmp_path)
    assert title == "[FIRING] OslrauIncident on machines"
    with_fields, without = _rendered(tool, "oslrau.text", data, tmp_path).splitlines()
    assert with_fields == (
        "machines/2 has an incident. Most blamed in this topic: speed torque. "
        "Since 2026-01-02 03:04:05 UTC. docs/runbooks.md#a http://grafana/d/oslrau-model"
    )
    assert "blamed" not in without


def test_a_chat_message_of_notify_says_what_is_wrong(tool, tmp_path):
    notice = {"summary": "press-7: load is high", "description": "In machines, fields load."}
    begun = {"startsAt": "2026-01-02T03:04:05Z", "labels": {"notice": "n"}, "annotations": notice}
    told = _rendered(tool, "oslrau.text", {"alerts": [begun]}, tmp_path)
    assert told == "press-7: load is high. In machines, fields load. Since 2026-01-02 03:04:05 UTC."


def test_the_alert_of_an_incident_names_the_fields_that_were_blamed_most(promtool):
    blamed = 'oslrau_blamed_fields_total{job="oslrau", topic="features", field="%s"}'
    place = 'job="oslrau", topic="features", partition="0"'
    series = {
        f'oslrau_incidents_open{{{place}, severity="major"}}': "1x30", blamed % "torque": "0+2x30",
        blamed % "speed": "0+5x30", blamed % "before": "9x30",
    }  # fmt: skip
    labels = {"job": "oslrau", "topic": "features", "partition": "0", "severity": "warning"}
    annotations = {
        "summary": "There is a major or critical incident.",
        "description": "features/0 has a major or critical incident.",
        "fields": "speed torque ",
        "runbook_url": "docs/runbooks.md#oslrauincident",
        "dashboard_url": f"{build.GRAFANA}/d/oslrau-model?var-topic=features&var-partition=0",
    }
    alerts = [{"exp_labels": labels, "exp_annotations": annotations}]
    test = {
        "input_series": [{"series": name, "values": series[name]} for name in series],
        "alert_rule_test": [
            {"eval_time": "20m", "alertname": "OslrauIncident", "exp_alerts": alerts}
        ],
    }
    promtool(_groups(), test)


def test_all_alerts_are_silent_while_all_is_well(check):
    check(".+", [], fires=False)


@pytest.mark.parametrize("alert", alerts())
def test_an_alert_fires_and_is_silent_about_what_is_short_or_small(alert, check):
    check(alert, FIRING[alert], fires=True)
    check(alert, SILENT[alert], fires=False)


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
    found = rules(copy.read_text())
    told = {rule["alert"]: rule["annotations"] for rule in found if "alert" in rule}
    assert told["OslrauNoWorker"]["runbook_url"] == f"{wiki}#oslraunoworker"
    assert told["OslrauNoWorker"]["dashboard_url"] == f"{grafana}/d/oslrau-pipeline"
    back = copy.read_text().replace(wiki, "docs/runbooks.md").replace(grafana, build.GRAFANA)
    assert rules(back) == rules()
    assert build.rules(wiki, f"{grafana}/") == copy.read_text()


def test_there_is_one_runbook_for_every_alert_and_no_other():
    text = (ROOT / "docs" / "runbooks.md").read_text()
    assert re.findall("^## (Oslrau.*)$", text, re.MULTILINE) == list(alerts())


DOUBLED = setting("alarm_rate", f"0.004x{MINUTES}")


@pytest.mark.parametrize(
    ("alert", "changed", "fires"),
    [
        ("OslrauIncident", [open_incidents("critical", "0x60 1x70")], True),  # for as long
        ("OslrauSnapshotDamaged", [damaged("_x100 1x30")], True),  # before the first look
        ("OslrauAnomalies", [*FIRING["OslrauAnomalies"], DOUBLED], False),  # its limit moves
    ],
)
def test_an_alert_knows_what_stays_what_was_before_and_the_settings(alert, changed, fires, check):
    check(alert, changed, fires)


def test_prometheus_scrapes_as_often_as_grafana_believes():
    scrape = yaml.safe_load(RULES.with_name("prometheus.yml").read_text())
    folder = ROOT / "grafana" / "provisioning" / "datasources"
    (source,) = yaml.safe_load((folder / "prometheus.yml").read_text())["datasources"]
    assert source["jsonData"]["timeInterval"] == scrape["global"]["scrape_interval"]
