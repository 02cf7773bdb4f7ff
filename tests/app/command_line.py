"""Commands of faust-oslrau, in the tests' own process or in another one."""

import os
import sys
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

from click.testing import CliRunner, Result

from faust_oslrau.app.cli import main

SCRIPT = str(Path(sys.executable).with_name("faust-oslrau"))


def run(*arguments: object, **options: Any) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, [*map(str, arguments)], **options)


def run_well(*arguments: object, **options: Any) -> Result:
    """Run a command in this process, which has to succeed."""
    result = run(*arguments, **options)
    assert result.exit_code == 0, result.output
    return result


def failure(*arguments: object) -> tuple[int, str]:
    """Run a command that fails, and return its exit code and the little that it tells."""
    result = run(*arguments)
    assert result.stderr.count("\n") <= 4, result.stderr  # click's usage takes three lines
    return result.exit_code, result.stderr


def start(*arguments: object, stderr: Any = PIPE, **variables: str) -> Popen[bytes]:
    """Start a command in a process, with more variables in its environment."""
    command = [SCRIPT, *map(str, arguments)]
    return Popen(command, stdout=PIPE, stderr=stderr, env=os.environ | variables)
