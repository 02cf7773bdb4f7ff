"""Programs of the tests: Prometheus and Alertmanager, each a process."""

import json
import math
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from dashboards import RULES, hurried
from post_server import PostServer

_PATIENCE_SECONDS = 300.0

_PROMETHEUS = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [rules.yml]
alerting: {{alertmanagers: [{{static_configs: [{{targets: ["127.0.0.1:{alertmanager}"]}}]}}]}}
scrape_configs:
  - {{job_name: faust-oslrau, static_configs: [{{targets: ["127.0.0.1:{worker}"]}}]}}
"""
_ALERTMANAGER = """
route: {{receiver: test, group_wait: 0s, group_interval: 1s}}
receivers: [{{name: test, webhook_configs: [{{url: "http://127.0.0.1:{webhook}/"}}]}}]
"""


def wait_for(what: str, look: Callable[[], Any]) -> Any:
    """Return what `look` finds, once it is something true."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not (found := look()):
        assert time.monotonic() < deadline, f"still no {what}"
        time.sleep(0.2)
    return found


class Server:
    """A process with a configuration and a web port, killed at the end."""

    name: str
    config: str
    options: Sequence[str] = ()

    def __init__(self, program: str, folder: Path, port: int, **ports: int) -> None:
        self.port, self._log = port, folder / f"{self.name}.log"
        config = folder / f"{self.name}.yml"
        config.write_text(self.config.format(**ports))
        command = [
            *(program, f"--config.file={config}", f"--web.listen-address=127.0.0.1:{port}"),
            *(option.format(folder=folder) for option in self.options),
        ]
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def get(self, page: str, **query: str) -> str:
        """Return the text of a page, nothing where nobody answers."""
        address = f"http://127.0.0.1:{self.port}{page}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                text: str = answer.read().decode()
                return text
        except OSError:
            return ""

    def wait_ready(self, page: str) -> Self:
        wait_for(f"answer of {page}: {self._log.read_text()[-2000:]}", lambda: self.get(page))
        return self


class Prometheus(Server):
    """A Prometheus with the project's rules, that scrapes one worker each second."""

    name, config, options = "prometheus", _PROMETHEUS, ("--storage.tsdb.path={folder}/data",)

    def __init__(self, program: str, folder: Path, port: int, **ports: int) -> None:
        (folder / "rules.yml").write_text(hurried(RULES.read_text()))
        super().__init__(program, folder, port, **ports)

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the series of an instant query that are numbers."""
        answer = json.loads(self.get("/api/v1/query", query=expression) or "{}")
        assert answer.get("status") == "success", f"{expression}: {answer}"
        found: list[dict[str, Any]] = answer["data"]["result"]
        return [series for series in found if not math.isnan(float(series["value"][1]))]


class Alertmanager(Server):
    """An Alertmanager that sends all alerts to a webhook."""

    name, config = "alertmanager", _ALERTMANAGER
    options = ("--storage.path={folder}/alertmanager", "--cluster.listen-address=")


def firing(webhook: PostServer, name: str) -> list[dict[str, Any]]:
    """Return the firing alerts of a name that an Alertmanager has posted."""
    return [
        alert
        for body in webhook.bodies
        for alert in body["alerts"]
        if alert["labels"]["alertname"] == name and alert["status"] == "firing"
    ]
