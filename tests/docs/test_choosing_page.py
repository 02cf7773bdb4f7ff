"""docs/choosing.md against what its commands print."""

import json
import re
import shlex

import pytest
from click.testing import CliRunner
from doc_pages import code, read, rows, texts

from faust_oslrau.app.cli import main

PAGE = "docs/choosing.md"


@pytest.fixture
def example(tmp_path, monkeypatch):
    """The folder in which the page's script and settings files are."""
    monkeypatch.chdir(tmp_path)
    (script,) = texts(PAGE, "python")
    exec(compile(script, PAGE, "exec"), {})
    for name, text in zip(("now.toml", "new.toml"), texts(PAGE, "toml"), strict=True):
        (tmp_path / name).write_text(text)
    return tmp_path


def run(line):
    result = CliRunner().invoke(main, shlex.split(line)[1:])
    assert result.exit_code == 0, result.output
    return result.stdout


def frame(text):
    """Return a text without its numbers and the alarms that it lists, which differ by CPU."""
    kept = [line for line in text.splitlines() if not re.match(r"\d+/\d+ .*\d\.", line)]
    return [re.sub(r"[-+]?[\d.,e-]*\d|-$", "", line).split() for line in kept]


def test_the_commands_print_the_tables_of_the_page(example):
    for line, text in zip(texts(PAGE, ""), texts(PAGE, "text"), strict=True):
        printed = iter(frame(run(line)))  # from which the page leaves out some lines
        assert all(shown in printed for shown in frame(text) if shown != ["..."])
    assert (example / "difference.png").exists() and (example / "curves.png").exists()


def test_the_members_of_the_json_are_the_documented_ones(example):
    documented = {name for row in rows(read(PAGE), 2) for cell in row for name in code(cell)}
    compared = json.loads(run("faust-oslrau compare now.toml new.toml log.csv --json"))
    evaluated = json.loads(run("faust-oslrau evaluate log.csv --labels fault --json"))
    compared["differing_settings"] = {}  # its members are settings
    assert members([compared, *evaluated]) == documented


def members(content):
    """Return the names of all members inside JSON."""
    if isinstance(content, dict):
        return set(content).union(*map(members, content.values()))
    if isinstance(content, list):
        return set().union(*map(members, content))
    return set()
