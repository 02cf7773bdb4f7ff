import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from signal import SIGINT

from faust_oslrau.app.offline import progress as module
from faust_oslrau.app.offline.progress import progress

WORK = """
from faust_oslrau.app.offline.progress import progress
with progress("scored") as report:
    report(12345, 0.5)
    report(23456, 1.0)
"""


COMPILING = """
from faust_oslrau.app.offline import progress
progress._SECONDS_BETWEEN_LINES = 0.0
from faust_oslrau.app.offline.kernels import compile_kernels
from faust_oslrau.app.settings import Settings
compile_kernels(Settings())
"""


def on_a_terminal():
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    subprocess.run([sys.executable, "-c", WORK], stderr=theirs, env=environment, check=True)
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # how a terminal without its other end says that it is over
        while piece := os.read(ours, 4096):
            shown += piece
    os.close(ours)
    return shown.decode()


def test_a_terminal_shows_a_bar():
    shown = on_a_terminal()
    assert "23,456 records" in shown and "100%" in shown


def test_without_a_terminal_long_work_prints_plain_lines(capsys, monkeypatch):
    monkeypatch.setattr(module, "_SECONDS_BETWEEN_LINES", 0.0)
    with progress("scored") as report:
        report(12345, 0.5)
    assert capsys.readouterr().err == "scored 12,345 records, 50%\n"


def test_kernels_that_are_compiled_are_counted(tmp_path):
    """The first kernels of an empty cache are enough: all take a minute."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", COMPILING]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True) as process:
        first, second = process.stderr.readline(), process.stderr.readline()
        process.send_signal(SIGINT)  # as of a terminal: the process that helps ends, too
    before = re.fullmatch(r"compiled (\d+) kernels, once for this version, \d+%\n", first)
    after = re.match(r"compiled (\d+) kernels, ", second)
    assert 1 <= int(before[1]) < int(after[1])  # two processes compile them
