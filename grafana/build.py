"""Write the dashboards; into a folder of yours together with the alert rules."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from . import model, pipeline
from .limits import RULES

GRAFANA = "http://localhost:3000"
"""Where the rules of this project have Grafana: there is that of the compose file."""

_RUNBOOKS = "docs/runbooks.md"
_FOLDER = Path(__file__).with_name("dashboards")
# Grafana 12 imports the same format, but was not tried.
_GRAFANA = {"type": "grafana", "id": "grafana", "name": "Grafana", "version": "11.0.0"}
_SOURCE = {"type": "datasource", "id": "prometheus", "name": "Prometheus", "version": "1.0.0"}


def dashboards(page: str | None) -> dict[str, str]:
    """Return the text of all dashboards by the names of their files.

    With the address of the workers' pages, the dashboards link to it.
    """
    boards = {"pipeline": pipeline.dashboard(page), "model": model.dashboard(page)}
    return {f"{name}.json": _importable(board) for name, board in boards.items()}


def rules(runbooks: str, grafana: str) -> str:
    """Return the alert rules with the addresses of the runbooks and of Grafana."""
    text = RULES.read_text(encoding="utf-8")
    text = text.replace(f"{_RUNBOOKS}#", f"{runbooks}#")
    return text.replace(f"{GRAFANA}/", f"{grafana.rstrip('/')}/")


def _importable(board: Dashboard) -> str:
    """Return a dashboard with what Grafana looks at when a person imports it.

    It need not ask for a data source (`__inputs`), as the dashboard has a variable for that.
    """
    data: dict[str, Any] = json.loads(JSONEncoder().encode(board.build()))
    kinds = sorted({panel["type"] for panel in data["panels"]} - {"row"})
    panels = [{"type": "panel", "id": kind, "name": kind, "version": ""} for kind in kinds]
    data |= {"__inputs": [], "__elements": {}, "__requires": [_GRAFANA, _SOURCE, *panels]}
    return json.dumps(data, indent=2, sort_keys=True) + "\n"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m grafana.build", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help=f"instead of {_FOLDER.name}/ here")
    parser.add_argument("--runbooks", default=_RUNBOOKS, help="address of docs/runbooks.md")
    parser.add_argument("--grafana", default=GRAFANA, help="address of Grafana")
    parser.add_argument("--page", help="address of the workers' pages, as the setting page_url")
    return parser.parse_args()


if __name__ == "__main__":
    chosen = _arguments()
    written = dashboards(chosen.page)
    if chosen.folder is not None:
        chosen.folder.mkdir(parents=True, exist_ok=True)
        written["rules.yml"] = rules(chosen.runbooks, chosen.grafana)
    for name, text in written.items():
        ((chosen.folder or _FOLDER) / name).write_text(text, encoding="utf-8")
