"""What a reader copies from the pages works: code, commands, settings and make targets."""

import doctest
import re
import shlex
import tomllib

import pytest
from click import Context
from doc_pages import PRESENT, ROOT, code, read, rows, texts

from faust_oslrau.app.cli import main as faust_oslrau
from faust_oslrau.app.settings import load_settings

DOCTESTS = ["docs/plugin.md", "docs/python.md"]
# Named in the pages, but not settings: the settings file, and where tests find their data.
_OTHER_NAMES = {"OSLRAU_SETTINGS", "OSLRAU_DATASETS", "OSLRAU_SCHEMAS"}


def shell_lines(page):
    """Return the commands of a page: lines of blocks without a language, and inline code."""
    lines = [line for text in texts(page, "") for line in text.split("\n")]
    return [line.strip() for line in lines + code(read(page))]


def commands(program):
    """Return (page, arguments) of each command of the pages that calls a program."""
    calls = []
    for page in PRESENT:
        for line in shell_lines(page):
            words = shlex.split(line, comments=True) if line.startswith(f"{program} ") else []
            if words:
                calls.append((page, words[len(program.split()) :]))
    return calls


@pytest.mark.parametrize("page", DOCTESTS)
def test_python_examples_give_what_they_show(page):
    example = doctest.DocTestParser().get_doctest(read(page), {}, page, page, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
    runner.run(example)
    assert runner.tries > 0 and runner.failures == 0


def test_every_page_with_python_examples_is_run():
    assert [page for page in PRESENT if re.search("^>>> ", read(page), re.MULTILINE)] == DOCTESTS


def test_commands_and_their_options_exist():
    calls = commands("faust-oslrau")
    assert len(calls) > 10
    for page, (name, *arguments) in calls:
        if name.isupper():  # faust-oslrau COMMAND
            continue
        command = faust_oslrau.get_command(Context(faust_oslrau), name)
        assert command is not None, f"{page}: faust-oslrau {name}"
        options = {option for parameter in command.params for option in parameter.opts}
        given = {argument.split("=")[0] for argument in arguments if argument.startswith("--")}
        assert given <= options | {"--help"}, f"{page}: faust-oslrau {name}"


def test_complete_commands_are_taken_by_their_parsers():
    calls = [call for page, call in commands("faust-oslrau") if len(call) > 2]
    assert len(calls) > 5
    for name, *arguments in calls:
        command = faust_oslrau.get_command(Context(faust_oslrau), name)
        command.make_context(name, arguments)  # raises UsageError


def test_make_targets_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {arguments[0] for _, arguments in commands("make")}
    assert {"demo", "test", "bench"} <= named <= targets


def test_benchmarks_exist():
    from benchmarks.__main__ import main as benchmarks

    named = {arguments[0] for _, arguments in commands("python -m benchmarks")}
    named |= {
        word.removeprefix("ARGS=").split()[0]
        for _, arguments in commands("make")
        for word in arguments
        if arguments[0] == "bench" and word.startswith("ARGS=")
    }
    assert {"ranking"} <= named <= {*benchmarks.commands, "-h", "COMMAND"}
    modules = {name for page in PRESENT for name in re.findall(r"-m benchmarks\.(\w+)", read(page))}
    assert modules and all((ROOT / "benchmarks" / f"{name}.py").is_file() for name in modules)


@pytest.mark.parametrize("page", PRESENT)
def test_settings_files_are_valid(page, tmp_path):
    path = tmp_path / "worker.toml"
    for text in texts(page, "toml"):
        path.write_text(text)
        found, passwords = tomllib.loads(text), set()
        if "SASL" in found.get("security", {}).get("protocol", ""):
            passwords.add("OSLRAU_SASL_PASSWORD")
        if "username" in found.get("registry", {}):
            passwords.add("OSLRAU_REGISTRY_PASSWORD")
        load_settings(path, dict.fromkeys(passwords, "secret"))


def test_environment_variables_are_settings():
    settings = {
        name.split("=")[0] for row in rows(read("docs/settings.md"), 5) for name in code(row[1])
    }
    settings |= set(re.findall(r"OSLRAU_SASL_PASSWORD_FILE", read("docs/settings.md")))
    for page in PRESENT:
        named = set(re.findall(r"\bOSLRAU_[A-Z_]*[A-Z]\b", read(page)))
        assert named <= settings | _OTHER_NAMES, page
