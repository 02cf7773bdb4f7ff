"""What makes a tag a release, as far as it can be read."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = ROOT / ".github" / "workflows"
with (ROOT / "pyproject.toml").open("rb") as file:
    PROJECT = tomllib.load(file)["project"]


def test_a_tag_with_another_version_makes_no_packages():
    made = subprocess.run([ROOT / ".ci" / "package", "9.9"], capture_output=True, text=True)
    assert made.returncode == 1
    assert made.stderr == f"pyproject.toml: expected version 9.9, got {PROJECT['version']}\n"


def test_the_bill_of_materials_has_what_the_extras_of_the_commands_bring():
    lines = (ROOT / ".ci" / "package").read_text().splitlines()
    (filled,) = (re.search(r"\$wheel\[(.*)\]", line) for line in lines if "formats" in line)
    others = {"bench", "dev", "observability", "opponents", "test"}
    of_python = {"plot", "river", "sklearn"}
    extras = PROJECT["optional-dependencies"].keys() - others - of_python
    assert set(filled[1].split(",")) == extras
    (bill,) = (line for line in lines if "cyclonedx-py" in line)
    (made,) = (line for line in lines if "--without-pip" in line)
    assert bill.split()[-1] == f'{made.split()[-1][:-1]}/bin/python"'


def test_the_image_needs_a_registry_and_a_name_in_lower_case():
    job = yaml.safe_load((WORKFLOWS / "release.yml").read_text())["jobs"]["image"]
    steps = [step["run"] for step in job["steps"] if "run" in step]
    assert _ran(steps[0], REGISTRY="").returncode == 1
    assert _ran(steps[0], REGISTRY="registry.example").returncode == 0
    named = {"GITHUB_REPOSITORY": "Owner/Project", "GITHUB_REF_NAME": "v0.2.0"}
    made = _ran(steps[1], GITHUB_OUTPUT="/dev/stdout", **named)
    assert made.stdout == "name=owner/project:0.2.0\n"
    assert job["permissions"] == {"contents": "read", "packages": "write"}


def test_the_chart_of_a_release_names_the_image_that_is_pushed(tmp_path):
    jobs = yaml.safe_load((WORKFLOWS / "release.yml").read_text())["jobs"]
    (chart,) = (step for step in jobs["build"]["steps"] if step.get("name") == "chart")
    assert chart["env"] == {"REGISTRY": "${{ vars.IMAGE_REGISTRY }}"}
    values = tmp_path / "charts" / "faust-oslrau" / "values.yaml"
    values.parent.mkdir(parents=True)
    before = (ROOT / "charts" / "faust-oslrau" / "values.yaml").read_text()
    values.write_text(before)
    helm = tmp_path / "helm"
    helm.write_text("#!/bin/sh\necho $*\n")
    helm.chmod(0o755)
    named = {"REGISTRY": "registry.example", "GITHUB_REPOSITORY": "Owner/Project"}
    made = _ran(chart["run"], cwd=tmp_path, PATH=f"{tmp_path}:{os.environ['PATH']}", **named)
    assert made.stdout == "package --destination dist charts/faust-oslrau\n"
    expected, after = yaml.safe_load(before), yaml.safe_load(values.read_text())
    expected["image"]["repository"] = "registry.example/owner/project"
    assert after == expected
    (pushed,) = (step["with"] for step in jobs["image"]["steps"] if "push" in step.get("with", {}))
    assert pushed["tags"].startswith("${{ vars.IMAGE_REGISTRY }}/")


def _ran(command, cwd=None, **environment):
    ran = ["bash", "-c", command]
    return subprocess.run(ran, capture_output=True, text=True, env=environment, cwd=cwd)


def test_the_readme_names_the_wheel_of_this_version():
    named = set(re.findall(r"faust_oslrau-(.*?)-py3-none-any", (ROOT / "README.md").read_text()))
    assert named == {PROJECT["version"]}


def test_links_of_the_readme_of_a_package_lead_to_the_project(tmp_path):
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    address = "https://git.example/owner/project"
    subprocess.run([ROOT / ".ci" / "addresses", tmp_path, address, "v0.2.0"], check=True)
    before, after = (
        re.findall(r"(!?)\[[^]]*\]\(([^)]*)\)", (folder / "README.md").read_text())
        for folder in (ROOT, tmp_path)
    )
    assert len(before) > 40
    assert after == [
        (mark, link if re.match("#|https?:", link)
         else f"{address}/{'raw' if mark else 'blob'}/v0.2.0/{link}")
        for mark, link in before
    ]  # fmt: skip
    with (tmp_path / "pyproject.toml").open("rb") as file:
        assert tomllib.load(file)["project"]["urls"] == {"Source": address}


def test_a_release_packs_a_readme_with_its_own_address():
    job = yaml.safe_load((WORKFLOWS / "release.yml").read_text())["jobs"]["build"]
    (packed,) = (step for step in job["steps"] if ".ci/package" in step.get("run", ""))
    address = "${{ github.server_url }}/${{ github.repository }}"
    assert packed["env"] == {"PROJECT_ADDRESS": address}
    script = (ROOT / ".ci" / "package").read_text()
    assert '.ci/addresses "$source" "$PROJECT_ADDRESS" "v$version"' in script


def test_each_python_that_is_named_is_tested():
    ci = yaml.safe_load((WORKFLOWS / "ci.yml").read_text())["jobs"]["test"]
    prefix = "Programming Language :: Python :: 3."
    named = [of.rsplit(" ", 1)[1] for of in PROJECT["classifiers"] if of.startswith(prefix)]
    assert ci["strategy"]["matrix"]["python"] == named


def test_commands_that_need_no_faust_are_tried_with_the_next_aiokafka_every_night():
    job = yaml.safe_load((WORKFLOWS / "nightly.yml").read_text())["jobs"]["next-aiokafka"]
    runs = [step["run"] for step in job["steps"] if "pytest" in step.get("run", "")]
    named = [word for run in runs for word in run.split() if word.startswith("tests/")]
    assert [name for name in named if not (ROOT / name).exists()] == []
    assert {"tests/app/registry", "tests/app/offline/test_produce.py"} < set(named)


@pytest.mark.parametrize("lacking", ["avx512f", "avx512vl", None])
def test_bits_are_compared_for_the_fourth_level_where_the_processor_has_it(lacking, tmp_path):
    has = ["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"]
    flags = " ".join(name for name in ["avx2", *has] if name != lacking)
    (tmp_path / "cpuinfo").write_text(f"vendor_id\t: x\nflags\t\t: fpu {flags} fma\nbugs\t: y\n")
    named = {"CPUINFO": str(tmp_path / "cpuinfo"), "PATH": os.environ["PATH"]}
    made = _ran(".ci/bits", cwd=ROOT, **named)  # with no Python
    levels = "x86-64-v2 x86-64-v3" + (" x86-64-v4" if lacking is None else "")
    assert (made.returncode, made.stdout) == (0, f"levels: {levels}\n"), made.stderr
