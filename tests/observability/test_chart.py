"""The Helm chart and the example for Strimzi."""

import json
import os
import re
import shutil
import signal
import subprocess
import tomllib
from pathlib import Path
from time import monotonic, sleep

import jsonschema
import pytest
import yaml
from dashboards import DASHBOARDS, ROOT, RULES

from faust_oslrau.app.settings import Settings, load_settings
from grafana import build

_CHART = ROOT / "charts" / "faust-oslrau"
_OPERATOR = "github.com/prometheus-operator/prometheus-operator"
_OPERATOR_VERSION = "v0.85.0"
_WATCHED = ("podMonitor", "rules", "dashboards")


@pytest.fixture(scope="module")
def render():
    """A function that renders the chart with some values, as text."""
    helm = shutil.which("helm")
    if helm is None:
        pytest.skip(
            "no helm, which the runners of continuous integration have; "
            "go install helm.sh/helm/v3/cmd/helm@latest brings it"
        )

    def run(command="template", *, fails=False, **values):
        chosen = [f"--set-json={name}={json.dumps(value)}" for name, value in values.items()]
        release = ["faust-oslrau"] if command == "template" else ["--strict"]
        done = subprocess.run(
            [helm, command, *release, _CHART, *chosen], capture_output=True, text=True, check=False
        )
        assert (done.returncode != 0) is fails, done.stdout + done.stderr
        return done.stderr if fails else done.stdout

    return run


def _objects(text):
    loaded = [found for found in yaml.safe_load_all(text) if found]
    return {(found["kind"], found["metadata"]["name"]): found for found in loaded}


def _pods(objects):
    return objects["StatefulSet", "faust-oslrau"]["spec"]["template"]


def _settings(objects, folder, environment=None):
    """Return the settings of a worker that reads the file of the chart's objects."""
    path = folder / "settings.toml"
    path.write_text(objects["ConfigMap", "faust-oslrau"]["data"]["settings.toml"])
    return load_settings(path, environment or {})


_OF_CLUSTERS = {
    "imagePullSecrets": [{"name": "registry"}],
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "kafka", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "serviceAccountName": "oslrau",
}


@pytest.fixture(scope="module")
def watched(render):
    """All objects with what watches the workers, by kind and name."""
    values = {name: {"enabled": True, "labels": {"release": "monitoring"}} for name in _WATCHED}
    values |= _OF_CLUSTERS | yaml.safe_load((ROOT / "charts" / "tokens.yaml").read_text())
    values["rules"] |= {"runbooks": "https://wiki.example/oslrau", "grafana": "https://g.example"}
    return _objects(render(**values))


def test_the_chart_has_the_version_of_the_project():
    with (ROOT / "pyproject.toml").open("rb") as file:
        version = tomllib.load(file)["project"]["version"]
    chart = yaml.safe_load((_CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (version, version)
    example = (ROOT / "docker" / "kubernetes.yaml").read_text()
    assert re.findall("image: (.*)", example) == [f"faust-oslrau:{version}"]


def test_helm_finds_no_fault_in_the_chart(render):
    render("lint")


def test_its_objects_fit_the_schemas_of_kubernetes(watched):
    schemas = pytest.importorskip(
        "kubernetes_validate", reason="needs kubernetes-validate: pip install kubernetes-validate"
    )
    of_kubernetes = [each for each in watched.values() if "monitoring." not in each["apiVersion"]]
    assert len(of_kubernetes) >= 5
    for found in of_kubernetes:
        schemas.validate(found, schemas.latest_version(), strict=True)


@pytest.fixture(scope="module")
def operator_schemas():
    """Schemas of the Prometheus operator's kinds, which take no members that they do not name."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("no go, which brings the definitions of the Prometheus operator")
    command = [go, "mod", "download", "-json", f"{_OPERATOR}@{_OPERATOR_VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    folder = Path(json.loads(done.stdout)["Dir"]) / "example" / "prometheus-operator-crd"
    found = {}
    for name in ("podmonitors", "prometheusrules"):
        text = (folder / f"monitoring.coreos.com_{name}.yaml").read_text()
        spec = yaml.safe_load(text)["spec"]
        (version,) = (each for each in spec["versions"] if each["storage"])
        kind = f"{spec['group']}/{version['name']}", spec["names"]["kind"]
        found[kind] = _strict(version["schema"]["openAPIV3Schema"])
    return found


def _strict(schema):
    """Return a schema that refuses what the server would drop without a word."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {name: _strict(value) for name, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "metadata" not in schema["properties"]:
        strict.setdefault("additionalProperties", False)
    return strict


@pytest.mark.slow  # its definitions take 40 MB
def test_what_watches_fits_the_schemas_of_the_prometheus_operator(watched, operator_schemas):
    of_operator = [each for each in watched.values() if "monitoring." in each["apiVersion"]]
    assert {each["kind"] for each in of_operator} == {"PodMonitor", "PrometheusRule"}
    for found in of_operator:
        schema = operator_schemas[found["apiVersion"], found["kind"]]
        checked = jsonschema.Draft202012Validator(schema)
        checked.validate(found)
        with pytest.raises(jsonschema.ValidationError, match="noSuchMember"):
            checked.validate(found | {"spec": found["spec"] | {"noSuchMember": 1}})


def test_the_kubernetes_example_is_what_the_chart_renders(render):
    example = (ROOT / "docker" / "kubernetes.yaml").read_text()
    assert example.partition("---\n")[2] == render().partition("---\n")[2]


def test_each_worker_keeps_its_name_and_settings_become_the_file(render, tmp_path):
    secret = {"secretKeyRef": {"name": "faust-oslrau", "key": "password"}}
    env = [{"name": "OSLRAU_SASL_PASSWORD", "valueFrom": secret}]
    text = 'broker = "k:9093"\n[learner]\nmemory = 1000\n'
    objects = _objects(render(env=env, settings=text, replicas=5))
    assert _settings(objects, tmp_path).learner.memory == 1000
    workers = objects["StatefulSet", "faust-oslrau"]["spec"]
    assert (workers["replicas"], workers["podManagementPolicy"]) == (5, "Parallel")
    (worker,) = _pods(objects)["spec"]["containers"]
    assert env[0] in worker["env"]
    named = {entry["name"]: entry.get("valueFrom") for entry in worker["env"]}
    pod = {"fieldRef": {"fieldPath": "metadata.name"}}
    assert named["OSLRAU_GROUP_INSTANCE_ID"] == pod


def test_a_worker_listens_where_the_chart_looks_for_it_whatever_its_settings_say(render, tmp_path):
    objects = _objects(render(settings="web_port = 7000\n"))
    (worker,) = _pods(objects)["spec"]["containers"]
    (port,) = worker["ports"]
    env = {entry["name"]: entry["value"] for entry in worker["env"] if "value" in entry}
    assert _settings(objects, tmp_path, env).web_port == port["containerPort"]


@pytest.mark.parametrize("none", [[], None])
def test_without_readers_nobody_reaches_the_web_port(render, none):
    policy = _objects(render(readers=none))["NetworkPolicy", "faust-oslrau"]["spec"]
    assert (policy["policyTypes"], policy["ingress"]) == (["Ingress"], [])


def test_pods_have_what_clusters_ask_for(render):
    image = {"repository": "registry.example/oslrau", "pullPolicy": "Always"}
    labels = {"azure.workload.identity/use": "true"}
    values = _OF_CLUSTERS | {"image": image, "podAnnotations": {"team": "a"}, "podLabels": labels}
    pods = _pods(_objects(render(**values)))
    assert {name: pods["spec"].get(name) for name in _OF_CLUSTERS} == _OF_CLUSTERS
    assert pods["metadata"]["annotations"].items() >= {("team", "a")}
    assert pods["metadata"]["labels"].items() > labels.items()
    assert pods["spec"]["containers"][0]["imagePullPolicy"] == "Always"


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"serviceAccount": {"name": "oslrau"}}, "serviceAccount"),
        ({"image": {"policy": "Always"}}, "policy"),
        ({"image": {"pullPolicy": "always"}}, "pullPolicy"),
        ({"replicas": "three"}, "replicas"),
        ({"podMonitor": {"enable": True}}, "enable"),
        ({"rules": {"runbooks": ""}}, "/rules/runbooks"),
        (
            {"env": [{"name": "OSLRAU_GROUP_INSTANCE_ID", "value": "a"}]},
            "env: OSLRAU_GROUP_INSTANCE_ID is set by the chart itself",
        ),
        ({"podAnnotations": {"checksum/settings": "a"}}, "podAnnotations: checksum/settings is"),
        ({"podLabels": {"app.kubernetes.io/name": "a"}}, "podLabels: app.kubernetes.io/name is"),
    ],
)
def test_values_that_the_chart_does_not_know_or_has_itself_are_refused(render, values, named):
    assert named in render(fails=True, **values)


def test_the_schema_names_the_values_and_takes_their_defaults():
    schema = json.loads((_CHART / "values.schema.json").read_text())
    values = yaml.safe_load((_CHART / "values.yaml").read_text())
    jsonschema.Draft7Validator(schema).validate(values)
    assert set(schema["properties"]) == {*values, "global"}
    for name, of in schema["properties"].items():
        if of.get("additionalProperties") is False:
            assert set(of["properties"]) == set(values[name])


def test_other_settings_restart_the_workers(render):
    before, after = (_pods(_objects(render(settings=f'app_id = "{each}"'))) for each in "ab")
    assert before["metadata"]["annotations"] != after["metadata"]["annotations"]


def test_prometheus_scrapes_the_pods_under_the_name_that_the_rules_look_for(watched):
    monitor = watched["PodMonitor", "faust-oslrau"]
    assert monitor["metadata"]["labels"]["release"] == "monitoring"
    pods = _pods(watched)
    assert monitor["spec"]["selector"]["matchLabels"] == pods["metadata"]["labels"]
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    (port,) = pods["spec"]["containers"][0]["ports"]
    assert (endpoint["port"], endpoint["path"]) == (port["name"], "/metrics")
    (named,) = endpoint["relabelings"]
    assert f'up{{job="{named["replacement"]}"}}' in RULES.read_text()


def test_the_rules_are_those_of_the_project_with_the_addresses_of_the_values(watched):
    spec = watched["PrometheusRule", "faust-oslrau"]["spec"]
    text = RULES.read_text().replace("docs/runbooks.md#", "https://wiki.example/oslrau#")
    assert spec == yaml.safe_load(text.replace("http://localhost:3000", "https://g.example"))


def test_the_dashboards_are_those_of_the_project(watched):
    found = watched["ConfigMap", "faust-oslrau-dashboards"]
    assert found["data"] == {path.name: path.read_text() for path in DASHBOARDS}
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"


def test_an_address_of_grafana_may_end_with_a_slash(render):
    rules = {"enabled": True, "grafana": "https://g.example/"}
    spec = _objects(render(rules=rules))["PrometheusRule", "faust-oslrau"]["spec"]
    assert "https://g.example/d/" in str(spec) and "example//" not in str(spec)


def test_dashboards_link_to_the_pages_as_those_of_the_project_do(render):
    page = "https://ops.example/oslrau"
    found = _objects(render(dashboards={"enabled": True, "page": page}))
    for name, text in found["ConfigMap", "faust-oslrau-dashboards"]["data"].items():
        ours, linked = json.loads(build.dashboards(page)[name]), json.loads(text)
        for board in (ours, linked):
            board["links"].sort(key=lambda link: link["title"])
        assert linked == ours


@pytest.fixture(scope="module")
def by_token():
    """The example's values for workers that come with tokens."""
    return yaml.safe_load((ROOT / "charts" / "tokens.yaml").read_text())


def test_a_program_beside_each_worker_writes_where_the_worker_reads(render, by_token, tmp_path):
    objects = _objects(render(**by_token))
    pod = _pods(objects)["spec"]
    (program,), (worker,) = pod["initContainers"], pod["containers"]
    assert program == by_token["initContainers"][0]
    file = Path(_settings(objects, tmp_path).security.sasl_token_file)
    for container in (program, worker):
        mounted = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
        assert mounted["token"] == str(file.parent)
    assert program["startupProbe"]["exec"]["command"] == ["test", "-s", str(file)]
    assert {"name": "FOLDER", "value": str(file.parent)} in program["env"]


def test_the_program_renews_the_token_and_keeps_the_last_one(by_token, tmp_path):
    (program,) = by_token["initContainers"]
    (tmp_path / "next").write_text("a.b.c")
    named = {"PROGRAM": f"cat '{tmp_path}/next'", "FOLDER": str(tmp_path), "SECONDS_BETWEEN": "0.1"}
    file = tmp_path / "token"

    def wait_for(token):
        deadline = monotonic() + 30
        while not file.exists() or file.read_text() != token:
            assert monotonic() < deadline
            sleep(0.05)

    told = {"env": os.environ | named, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(program["command"], **told, start_new_session=True) as process:
        try:
            wait_for("a.b.c")
            (tmp_path / "next").unlink()
            sleep(0.5)
            wait_for("a.b.c")
            (tmp_path / "next").write_text("d.e.f")
            wait_for("d.e.f")
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    assert file.stat().st_mode & 0o077 == 0


@pytest.fixture(scope="module")
def strimzi():
    return _objects((ROOT / "charts" / "strimzi.yaml").read_text())


def test_strimzis_topics_are_those_of_the_default_settings(strimzi):
    settings = Settings()
    large = {"max.message.bytes": settings.max_output_bytes}
    configured = {
        **dict.fromkeys(settings.source_topics),
        settings.scores_topic: large,
        settings.anomalies_topic: large,
        settings.dead_letter_topic: large,
        settings.snapshots_topic: {"cleanup.policy": "compact"},
    }
    topics = {name: of["spec"] for (kind, name), of in strimzi.items() if kind == "KafkaTopic"}
    assert {name: spec.get("config") for name, spec in topics.items()} == configured
    assert len({spec["partitions"] for spec in topics.values()}) == 1


def test_strimzis_user_has_the_rights_that_the_security_page_names_and_no_others(strimzi):
    """Without Create, as the topics exist; tests/app/worker/test_security.py tries them."""
    settings, write = Settings(), {"Write", "DescribeConfigs", "Alter"}
    expected = {
        ("topic", "features", "literal"): {"Read", "DescribeConfigs"},
        ("topic", settings.scores_topic, "literal"): write,
        ("topic", settings.anomalies_topic, "literal"): write | {"Read"},
        ("topic", settings.dead_letter_topic, "literal"): write,
        ("topic", settings.snapshots_topic, "literal"): write | {"Read"},
        ("group", settings.app_id, "literal"): {"Read"},
        ("transactionalId", f"{settings.app_id}/", "prefix"): {"Write", "Describe"},
    }
    granted = strimzi["KafkaUser", "faust-oslrau"]["spec"]["authorization"]["acls"]
    found = {tuple(acl["resource"].values()): set(acl["operations"]) for acl in granted}
    assert found == expected
