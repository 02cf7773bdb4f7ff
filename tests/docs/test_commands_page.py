"""docs/commands.md against the command line."""

import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click import Context, Option
from doc_pages import code, read, rows, section

from faust_oslrau.app import commands, errors
from faust_oslrau.app.cli import main

PAGE = "docs/commands.md"
COMMANDS = main.list_commands(Context(main))


def test_there_is_one_section_for_every_command_and_no_other():
    assert sorted(re.findall(r"^## faust-oslrau (\w+)$", read(PAGE), re.MULTILINE)) == COMMANDS


def test_all_commands_are_listed_without_importing_any():
    assert [module.name for module in pkgutil.iter_modules(commands.__path__)] == COMMANDS
    code = (
        "import sys; from faust_oslrau.app.cli import main;"
        "main(['--help'], standalone_mode=False); sys.exit('numpy' in sys.modules)"
    )
    help_ = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert help_.returncode == 0
    assert [line.split()[0] for line in help_.stdout.splitlines()[-len(COMMANDS) :]] == COMMANDS


def test_an_output_that_cannot_be_written_ends_a_command_with_one_line():
    command = [Path(sys.executable).with_name("faust-oslrau"), "--help"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "Error: the output: No space left on device\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_options_and_their_defaults_are_the_documented_ones(name):
    command = main.get_command(Context(main), name)
    options = {
        option.opts[0]: str(option.default) if option.show_default else None
        for option in command.params
        if isinstance(option, Option) and option.opts[0] != "--help"
    }
    own = own_of(name)
    assert not own.keys() & of_several(name).keys()
    documented = own | of_several(name)
    if name == "demo":
        # Of two kinds: the default holds unless a file is sent.
        assert "default: 30;" in command.get_help(Context(command))
        assert documented.pop("--seconds") == "30" and "--seconds" in options
        del options["--seconds"]
    assert documented == options


def own_of(name):
    """Return the options in a command's own table, which may have no column of defaults."""
    below = section(PAGE, f"faust-oslrau {name}")
    without = [row for row in rows(below, 2) if row[0].startswith("`--")]
    return dict.fromkeys(code(row[0])[0] for row in without) | {
        code(option)[0]: next(iter(code(default)), None) for option, default, _ in rows(below, 3)
    }


def of_several(name):
    """Return the options of a command, with their defaults, that the page explains once."""
    table = rows(section(PAGE, "Options of several commands"), 4)
    return {
        code(option)[0]: next(iter(code(default)), None)
        for option, of, default, _ in table
        if (name in code(of)) != of.startswith("all but")
    }


def test_the_exit_codes_are_those_of_the_errors():
    named = {int(row[0]) for row in rows(section(PAGE, "Commands"), 2)}
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    assert named == {0} | {kind.exit_code for kind in kinds if hasattr(kind, "exit_code")}
