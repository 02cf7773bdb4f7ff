"""A package brings kernels along for the processors of a level; all others are compiled."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from interpreter import needs_compiler

import faust_oslrau.learner

pytestmark = needs_compiler("looks for compiled kernels")

LEVEL = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}  # every processor has it
OTHER = {"NUMBA_CPU_NAME": "nocona", "NUMBA_CPU_FEATURES": ""}
RUN = """
from numba.core import event
from faust_oslrau.learner.vector.lanes import padded

compiled = []

class Listener(event.Listener):
    def on_start(self, started): compiled.append(started.data["dispatcher"].py_func.__name__)
    def on_end(self, _): ...

event.register("numba:compile", Listener())
print(padded(17), compiled)
"""


def _run(root: Path, cache: Path, told: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        env={
            **os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1",
            "NUMBA_CACHE_DIR": str(cache), **told,
        },
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The package as a wheel with the kernel `padded` installs it."""
    tmp_path = tmp_path_factory.mktemp("installed")
    source = Path(faust_oslrau.learner.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__", "compiled")
    copied = tmp_path / "faust_oslrau" / "learner"
    shutil.copytree(source, copied, ignore=ignored)
    assert _run(tmp_path, tmp_path / "built", LEVEL) == "32 ['padded']"
    (built,) = (tmp_path / "built").glob("vector_*")
    brought = copied / "compiled" / LEVEL["NUMBA_CPU_NAME"]
    shutil.copytree(built, brought / "vector")
    shutil.move(brought / "vector" / "kernels.sha256", brought)
    return tmp_path


@pytest.fixture
def package(installed, tmp_path):
    """A copy of the package for the test to change."""
    shutil.copytree(installed / "faust_oslrau", tmp_path / "faust_oslrau")
    return tmp_path / "faust_oslrau" / "learner"


def _kernels(folder: Path) -> list[str]:
    return [file.name for file in folder.rglob("*.nbc")]


def test_the_packages_kernels_are_used_or_another_processor_compiles_its_own(package, tmp_path):
    before = _kernels(package)
    assert _run(tmp_path, tmp_path / "own", LEVEL) == "32 []"
    assert _kernels(tmp_path / "own") == []
    assert _run(tmp_path, tmp_path / "own", OTHER) == "32 ['padded']"
    assert _run(tmp_path, tmp_path / "own", OTHER) == "32 []"
    assert len(_kernels(tmp_path / "own")) == 1
    assert _kernels(package) == before


@pytest.mark.parametrize(
    ("edited", "compiled"), [("network/layout.py", ["padded"]), ("compile.py", [])]
)
def test_an_edit_drops_all_kernels_unless_none_depends_on_it(package, tmp_path, edited, compiled):
    assert _run(tmp_path, tmp_path / "own", OTHER) == "32 ['padded']"
    with (package / edited).open("a") as source:
        source.write("# edited\n")
    for processor in (LEVEL, OTHER):
        assert _run(tmp_path, tmp_path / "own", processor) == f"32 {compiled}"


def test_a_copy_of_the_package_brings_its_kernels_along(package, tmp_path):
    beside_the_sources = {**OTHER, "NUMBA_CACHE_DIR": ""}
    assert _run(tmp_path, tmp_path, beside_the_sources) == "32 ['padded']"
    copied = tmp_path / "copy" / "faust_oslrau" / "learner"
    shutil.copytree(package, copied, copy_function=shutil.copy)
    assert _run(tmp_path / "copy", tmp_path, beside_the_sources) == "32 []"


def test_without_a_folder_to_write_to_kernels_are_compiled_at_each_start(package, tmp_path):
    (tmp_path / "file").touch()  # below it there is no folder, even for root
    for folder in package.iterdir():
        if folder.is_dir():
            (folder / "__pycache__").touch()
    nowhere = {"NUMBA_CACHE_DIR": "", "XDG_CACHE_HOME": str(tmp_path / "file")}
    for _ in range(2):
        assert _run(tmp_path, tmp_path, {**OTHER, **nowhere}) == "32 ['padded']"
