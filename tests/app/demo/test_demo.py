"""The demonstration as a newcomer starts it: one command."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import SCRIPT, run

from faust_oslrau.app.brokers import KafkaBroker

pytestmark = pytest.mark.timeout(600)  # the kernels may have to be compiled first


class Demo:
    """A demonstration in a process of its own."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [SCRIPT, "demo", "--json", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._begun = ""

    def wait_until_running(self) -> None:
        """Read the lines until one tells how many seconds records have come for."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._begun += line
            if re.match(r"\d+ s\b", line):
                return
        pytest.fail(f"it ended before:\n{self._begun}")

    def children(self) -> list[int]:
        command = ["pgrep", "-P", str(self.process.pid)]
        found = subprocess.run(command, capture_output=True, text=True)
        return [int(number) for number in found.stdout.split()]

    def end(self) -> tuple[int, dict[str, Any], str]:
        """Wait for the end and return exit code, summary and plain lines."""
        output, lines = self.process.communicate()
        assert output, lines
        return self.process.returncode, json.loads(output), self._begun + lines


@pytest.fixture
def start() -> Iterator[Callable[..., Demo]]:
    started: list[Demo] = []

    def start(*arguments: str) -> Demo:
        started.append(Demo(*arguments))
        return started[-1]

    yield start
    for demo in started:
        demo.process.kill()
        demo.process.communicate()


@pytest.mark.real_kafka
def test_every_record_is_accounted_for(start: Callable[..., Demo], kafka: KafkaBroker) -> None:
    machines = ("--machines", "9", "--no-entities")
    broker = ("--broker", kafka.bootstrap_servers)
    code, summary, lines = start("--seconds", "4", "--rate", "500", *machines, *broker).end()
    _check(code, summary, lines)
    assert all(topic.startswith("demo-") for topic in summary["topics"])


def _check(code: int, summary: dict[str, Any], lines: str) -> None:
    assert code == 0, lines
    assert summary["accounted"]
    assert summary["records"] == summary["scored"] + sum(summary["rejected"].values()) > 500
    assert summary["rejected"] == summary["malformed"]
    assert summary["nodes"] > 4
    assert 0 <= summary["incidents_with_faults"] <= summary["incidents"]
    assert "streaming simulated machines" in lines
    assert "log-likelihood -" in lines


@pytest.mark.parametrize("settings", [None, 'features = ["count"]\nentity = "kind"\n'])
def test_a_file_is_streamed_to_its_end(
    start: Callable[..., Demo], tmp_path: Path, settings: str | None
) -> None:
    rows = [f"{row},{row % 7}.5,{row % 3}" for row in range(700)]
    rows[600] = "600,none,0"  # after the fields are chosen
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(["count,height,kind", *rows]))
    arguments = ["--csv", str(path), "--partitions", "2", "--rate", "5000"]
    if settings is not None:
        (tmp_path / "mine.toml").write_text(settings)
        arguments += ["--settings", str(tmp_path / "mine.toml")]
    code, summary, lines = start(*arguments).end()
    assert code == 0, lines
    assert summary["records"] == 700
    assert summary["rejected"] == ({"not_a_number": 1} if settings is None else {})
    assert summary["injected"] == {}


def test_ctrl_c_ends_it_with_the_summary_and_nothing_is_left(start: Callable[..., Demo]) -> None:
    demo = start("--seconds", "600", "--rate", "5000")
    demo.wait_until_running()
    (worker,) = demo.children()
    demo.process.send_signal(signal.SIGINT)
    _check(*demo.end())
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


def test_records_that_a_dead_worker_leaves_are_missing(start: Callable[..., Demo]) -> None:
    demo = start("--seconds", "600", "--rate", "5000")
    demo.wait_until_running()
    (worker,) = demo.children()
    os.kill(worker, signal.SIGKILL)
    code, summary, _ = demo.end()
    assert code == 1
    answered = summary["scored"] + sum(summary["rejected"].values())
    assert summary["missing"] == summary["records"] - answered
    assert summary["missing"] > 0
    assert summary["worker_failure"] is not None


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["--machines", "9", "--csv", "a.csv"], 2, "--machines and --csv exclude each other"),
        (["--no-entities", "--csv", "a.csv"], 2, "--no-entities and --csv exclude each other"),
        (["--csv", "a.csv"], 1, "Error: a.csv line 2: expected 2 cells as in the header, got 1"),
    ],
)
def test_wrong_options_and_files_end_it_in_one_line(
    arguments: list[str], code: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("a,b\n1\n")
    result = run("demo", *arguments)
    assert result.exit_code == code
    assert reason in result.stderr.splitlines()[-1]
