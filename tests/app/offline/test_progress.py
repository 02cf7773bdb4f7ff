from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress

from faust_oslrau.app.offline import progress as module
from faust_oslrau.app.offline.progress import progress

WORK = """
from faust_oslrau.app.offline.progress import progress
with progress("scored") as report:
    report(12345, 0.5)
    report(23456, 1.0)
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


def test_without_a_terminal_short_work_prints_nothing(capsys):
    with progress("scored") as report:
        report(10, 1.0)
    assert capsys.readouterr().err == ""


def test_without_a_terminal_long_work_prints_plain_lines(capsys, monkeypatch):
    monkeypatch.setattr(module, "_SECONDS_BETWEEN_LINES", 0.0)
    with progress("scored") as report:
        report(12345, 0.5)
    assert capsys.readouterr().err == "scored 12,345 records, 50%\n"
