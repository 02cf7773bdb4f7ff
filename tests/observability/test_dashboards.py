"""The dashboards: as built, valid, and complete."""

import re
import subprocess
import sys

import jsonschema
import promql_parser
import pytest
import yaml
from dashboards import DASHBOARDS, ROOT, alerts, expressions, load, panels

from grafana.limits import limit
from schemas.members import MEMBERS, Kind

_ALL = [load(path) for path in DASHBOARDS]
_EVERY = pytest.mark.parametrize("dashboard", _ALL, ids=[path.stem for path in DASHBOARDS])
_EXPRESSIONS = expressions("panels") | expressions("annotations")


def _stored(dashboard):
    """Return what of a dashboard Grafana stores."""
    return {name: of for name, of in dashboard.items() if not name.startswith("__")}


def test_the_files_are_what_the_code_builds(tmp_path):
    address = ["--runbooks", "https://wiki.example/runbooks"]
    command = [sys.executable, "-m", "grafana.build", tmp_path / "new", *address]
    subprocess.run(command, cwd=ROOT, check=True)
    built = {path.name: path.read_text() for path in (tmp_path / "new").iterdir()}
    rules = built.pop("rules.yml")
    assert "runbook_url: https://wiki.example/runbooks#oslraulag" in rules
    assert built == {path.name: path.read_text() for path in DASHBOARDS}


def test_dashboards_link_to_the_pages_if_they_are_told_their_address(tmp_path, schema):
    page = "https://ops.example/oslrau"
    command = [sys.executable, "-m", "grafana.build", tmp_path, "--page", page]
    subprocess.run(command, cwd=ROOT, check=True)
    for path in DASHBOARDS:
        plain, built = load(path), load(tmp_path / path.name)
        (link,) = (link for link in built["links"] if link not in plain["links"])
        assert (link["title"], link["url"], link["targetBlank"]) == ("Incidents", page, True)
        jsonschema.validate(_stored(built), schema("grafana-dashboard-11.6.schema.json"))


@_EVERY
def test_an_import_needs_no_more_than_what_grafana_11_has(dashboard):
    required = {(of["type"], of["id"]) for of in dashboard["__requires"]}
    used = {("panel", panel["type"]) for panel in panels(dashboard)}
    assert required == {("grafana", "grafana"), ("datasource", "prometheus")} | used
    assert dashboard["__inputs"] == [] and "${DS_" not in str(dashboard)


@_EVERY
def test_a_dashboard_fits_grafanas_schema(dashboard, schema):
    jsonschema.validate(_stored(dashboard), schema("grafana-dashboard-11.6.schema.json"))


def test_the_example_of_a_panel_lists_members_of_incidents(schema):
    panel = load(ROOT / "grafana" / "incidents_panel.json")
    board = _stored(load(DASHBOARDS[0])) | {"panels": [panel]}
    jsonschema.validate(board, schema("grafana-dashboard-11.6.schema.json"))
    (query,) = panel["targets"]
    assert query["url"].endswith("/live") and query["root_selector"] == "incidents"
    named = {column["selector"] for column in query["columns"]}
    assert named < {member.name for member in MEMBERS if Kind.INCIDENT in member.of}


def test_the_chart_opens_the_page_to_grafana_as_the_docs_say():
    text = (ROOT / "docs" / "metrics.md").read_text()
    (example,) = re.findall(r"```yaml\n(readers:.*?)```", text, re.DOTALL)
    prometheus, grafana = yaml.safe_load(example)["readers"]
    values = yaml.safe_load((ROOT / "charts" / "faust-oslrau" / "values.yaml").read_text())
    assert [prometheus] == values["readers"]
    assert grafana["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "grafana"}


@pytest.mark.parametrize("expression", _EXPRESSIONS.values(), ids=_EXPRESSIONS)
def test_an_expression_parses(expression):
    assert "$" not in expression  # a variable that the dashboards do not have
    promql_parser.parse(expression)


def test_panels_that_a_setting_brings_data_name_it_while_they_have_none():
    needed = {"the setting entity", "silences in the setting events", "the setting rates",
              "the setting forecasts"}  # fmt: skip
    (model,) = (load(path) for path in DASHBOARDS if path.stem == "model")
    shown = [panel.get("fieldConfig", {}).get("defaults", {}) for panel in panels(model)]
    assert {f"no data without {each}" for each in needed} <= {of.get("noValue") for of in shown}


def test_uids_and_the_variables_in_links_never_change():
    assert [load(path)["uid"] for path in DASHBOARDS] == ["oslrau-model", "oslrau-pipeline"]
    names = [[v["name"] for v in load(path)["templating"]["list"]] for path in DASHBOARDS]
    assert names == [["datasource", "job", "instance", "topic", "partition"]] * 2


@_EVERY
def test_panels_have_numbers_of_their_own_and_do_not_overlap(dashboard):
    numbers = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(numbers)) == len(numbers)
    cells = [cell for panel in dashboard["panels"] for cell in _cells(panel["gridPos"])]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) == 23


@_EVERY
def test_every_panel_says_what_it_shows_in_which_unit_from_where_and_that_it_has_no_data(dashboard):
    for panel in panels(dashboard):
        assert panel["title"]
        if panel["type"] in ("stat", "timeseries"):
            assert panel["fieldConfig"]["defaults"]["noValue"], panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert _unit(panel), panel["title"]
        sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
        assert {source["uid"] for source in sources} == {"${datasource}"}
        for target in panel["targets"]:  # rates follow the zoom
            windows = re.findall(r"rate\([^\[]*\[(.*?)\]", target["expr"])
            assert set(windows) <= {"$__rate_interval"}, panel["title"]


@_EVERY
def test_dashboards_link_to_each_other_with_time_and_selection(dashboard):
    (link,) = dashboard["links"]
    (other,) = {"oslrau-model", "oslrau-pipeline"} - {dashboard["uid"]}
    assert (link["url"], link["keepTime"], link["includeVars"]) == (f"/d/{other}", True, True)


@pytest.mark.parametrize(
    "alert",
    [f"Oslrau{name}" for name in (
        "Lag", "ScoresLate", "DeadLetters", "SchemasAwaited", "BrokerAway", "SnapshotOld",
        "RestoreFailing", "SnapshotDamaged", "Rebalancing", "Drift", "Anomalies",
    )],
)  # fmt: skip
def test_thresholds_are_read_from_the_rules(alert):
    assert limit(alert) == _limit(promql_parser.parse(alerts()[alert]["expr"]))


def _limit(expression):
    """Return the number on the right of the first comparison, going left."""
    while not isinstance(expression.rhs, promql_parser.NumberLiteral):
        expression = expression.lhs
    return expression.rhs.val


def _cells(position):
    x, y, width, height = (position[key] for key in "xywh")
    return [(x + i, y + j) for i in range(width) for j in range(height)]


def _unit(panel):
    axis = panel.get("options", {}).get("yAxis", {})  # heat maps have theirs there
    return panel["fieldConfig"]["defaults"].get("unit") if "fieldConfig" in panel else axis["unit"]
