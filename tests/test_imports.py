"""Which module may import which: the contracts of `[tool.importlinter]` in pyproject.toml."""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("learner", "topics", "app")


def _lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts for the packages that Python finds in a folder first."""
    command = [Path(sysconfig.get_path("scripts")) / "lint-imports", "--no-cache"]
    return subprocess.run(
        [*command, "--config", ROOT / "pyproject.toml"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A folder with a copy of the packages."""
    for package in PACKAGES:
        folder = tmp_path / "faust_oslrau" / package
        shutil.copytree(ROOT / package, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_imports_go_one_way(copy: Path) -> None:
    checked = _lint(copy)
    assert checked.returncode == 0, checked.stdout
