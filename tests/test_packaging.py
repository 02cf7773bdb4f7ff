"""Which module may import which, what the learner needs, and what the wheel holds."""

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("learner", "topics", "app")


def _copied(folder: Path) -> Path:
    """Copy the packages, without what is compiled, to a folder."""
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, folder / package, ignore=ignored)
    return folder


def test_imports_go_one_way(tmp_path: Path) -> None:
    """By the contracts of `[tool.importlinter]`, for the packages that Python finds first."""
    _copied(tmp_path / "faust_oslrau")
    linter = Path(sysconfig.get_path("scripts")) / "lint-imports"
    command = [linter, "--no-cache", "--config", ROOT / "pyproject.toml"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    checked = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from (f"{node.module}.{name.name}" for name in node.names)


def _foreign_imports(package: str) -> set[str]:
    names = {name for file in (ROOT / package).rglob("*.py") for name in _imported(file)}
    return {name.split(".")[0] for name in names} - sys.stdlib_module_names - {"faust_oslrau"}


def test_the_learner_needs_numpy_scipy_and_its_compiler_only() -> None:
    optional = {"networkx", "river", "sklearn"}
    assert _foreign_imports("learner") - optional <= {"numpy", "scipy", "numba", "llvmlite"}
    code = f"import sys, faust_oslrau.learner; print({optional} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert loaded.stdout.strip() == "set()", loaded.stderr


def test_every_folder_with_code_or_the_page_is_declared() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        declared = set(tomllib.load(file)["tool"]["setuptools"]["packages"])
    files = (file for p in PACKAGES for file in (ROOT / p).rglob("*.*"))
    folders = {f.parent.relative_to(ROOT) for f in files if f.suffix in (".py", ".js")}
    assert {f"faust_oslrau.{'.'.join(folder.parts)}" for folder in folders} == declared


def test_tested_versions_are_pinned_without_hashes_or_addresses() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert pins
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+]+", pin)] == []


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy: a stale build/ in the checkout would go into it."""
    source = _copied(tmp_path_factory.mktemp("source"))
    for file in (ROOT / "pyproject.toml", ROOT / "LICENSE", *ROOT.glob("*.md")):
        shutil.copy(file, source)
    out = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "-w", out, source], check=True)
    (built,) = out.iterdir()
    return built


def test_the_wheel_puts_nothing_but_faust_oslrau_into_site_packages(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert tops == {"faust_oslrau", f"faust_oslrau-{version('faust-oslrau')}.dist-info"}


def test_the_wheel_holds_every_module_the_type_marks_and_the_licence(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    files = {file for package in PACKAGES for file in (ROOT / package).rglob("*.py")}
    files |= {ROOT / package / "py.typed" for package in PACKAGES}
    files |= {ROOT / "app/brokers/pom.xml", ROOT / "app/brokers/log4j2.properties"}
    files |= {*(ROOT / "app/pages/static").iterdir()}
    assert {f"faust_oslrau/{file.relative_to(ROOT)}" for file in files} <= names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


@pytest.mark.slow
def test_the_installed_wheel_imports_and_has_its_command(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    binaries = tmp_path / "venv" / "bin"
    pip = [sys.executable, "-m", "pip", "--python", str(binaries / "python")]
    subprocess.run([*pip, "install", "-q", "--no-deps", "--no-index", wheel], check=True)
    # Dependencies come from this environment, by a path entry; its editable install does not.
    site = next((tmp_path / "venv").glob("lib/python*/site-packages"))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    code = "import faust_oslrau.learner, faust_oslrau.topics, faust_oslrau.app as app"
    run = [str(binaries / "python"), "-c", f"{code}; print(app.__file__)"]
    imported = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert Path(imported.stdout.strip()).is_relative_to(site)
    shown = subprocess.run([binaries / "faust-oslrau", "--version"], capture_output=True, text=True)
    assert (shown.returncode, shown.stdout.split()[-1]) == (0, version("faust-oslrau"))
