"""The workers of one deployment, each in a process."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from forked_worker import ForkedWorker
from worker_process import WorkerProcess
from worker_settings import pace_variable, snapshots_in, split

from faust_oslrau.app.brokers.ports import free_ports
from faust_oslrau.app.settings import Settings


def settings_of(servers: str, name: str) -> Settings:
    """Return settings with topics and a group that begin with a name, and a free port."""
    return Settings(
        broker=servers,
        app_id=name,
        source_topics=(name,),
        scores_topic=f"{name}.scores",
        anomalies_topic=f"{name}.anomalies",
        dead_letter_topic=f"{name}.dead",
        snapshots=f"topic:{name}.snapshots",
        web_port=free_ports(1)[0],
        session_timeout=6.0,
    )


class Workers:
    """Starts workers with the same settings, and kills them in the end; logs go to a folder."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self._settings, self._folder = settings, folder
        self._started: list[WorkerProcess] = []

    def start(self, *, command: Sequence[str] = (), **changes: object) -> WorkerProcess:
        """Start a worker with some other settings.

        `command` are arguments of a new Python process; without it, the worker is a forked one.
        """
        own, pace = split({"commit_seconds": 0.2, **changes})
        if "snapshots" in own:
            own["snapshots"] = snapshots_in(str(own["snapshots"]), self._settings, self._folder)
        changed = {f"OSLRAU_{name.upper()}": str(value) for name, value in own.items()}
        environment = {**os.environ, **_environment(self._settings), **changed}
        environment |= pace_variable(pace)
        log = self._folder / f"worker-{len(self._started)}.log"
        log.touch()
        process = (
            _run([sys.executable, *command], environment, log)
            if command
            else ForkedWorker(["worker"], environment, log)
        )
        self._started.append(WorkerProcess(process, int(environment["OSLRAU_WEB_PORT"]), log))
        return self._started[-1]

    def kill(self) -> None:
        """End all that are still there."""
        for worker in self._started:
            worker.kill()


def _run(
    command: Sequence[str], environment: Mapping[str, str], log: Path
) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        return subprocess.Popen(command, env=environment, stderr=output, stdout=output)


def _environment(settings: Settings) -> dict[str, str]:
    names = (
        *("broker", "app_id", "scores_topic", "anomalies_topic", "dead_letter_topic"),
        *("web_port", "session_timeout", "snapshots", "delivery"),
    )
    found = {f"OSLRAU_{name.upper()}": str(getattr(settings, name)) for name in names}
    if settings.chosen_fields is not None:
        found["OSLRAU_FEATURES"] = ",".join(settings.chosen_fields)
    return found | {"OSLRAU_SOURCE_TOPICS": ",".join(settings.source_topics)}
