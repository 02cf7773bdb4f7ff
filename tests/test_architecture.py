"""ARCHITECTURE.md names what there is, and nothing else."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "ARCHITECTURE.md").read_text()
PACKAGES = ("learner", "topics", "app")


def _folders() -> list[str]:
    found = {file.parent for package in PACKAGES for file in (ROOT / package).rglob("*.py")}
    return sorted(str(folder.relative_to(ROOT)) for folder in found)


@pytest.mark.parametrize("folder", _folders())
def test_every_folder_with_code_is_on_the_map(folder: str) -> None:
    assert f"`{folder}/" in TEXT


@pytest.mark.parametrize("folder", ["app", "learner", "app/partitions"])
def test_every_module_of_the_outer_folders_is_on_the_map(folder: str) -> None:
    prefix = "" if folder == "app/partitions" else f"{folder}/"
    suffix = "" if folder == "app/partitions" else ".py"
    for file in (ROOT / folder).glob("[!_]*.py"):
        assert f"`{prefix}{file.stem}{suffix}`" in TEXT, file


def test_every_path_that_it_names_exists() -> None:
    named = set(re.findall(r"`((?:app|learner|topics|tests|benchmarks)/[\w/.]*)`", TEXT))
    assert len(named) > 30
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_every_identifier_that_it_names_exists() -> None:
    code = "\n".join(f.read_text() for package in PACKAGES for f in (ROOT / package).rglob("*.py"))
    named = set(re.findall(r"`(?:\w+\.)?([A-Z]\w+[a-z]\w*|[a-z]+(?:_[a-z]+)+)`", TEXT))
    named -= {"perform_seek", "ConsumerScheduler"}  # Faust's
    assert [name for name in sorted(named) if not re.search(rf"\b{name}\b", code)] == []
