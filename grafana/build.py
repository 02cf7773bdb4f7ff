"""Write the dashboards as the JSON files that Grafana reads: `python -m grafana.build [FOLDER]`."""

from __future__ import annotations

import sys
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from . import model, pipeline

_FOLDER = Path(__file__).with_name("dashboards")


def write(folder: Path) -> None:
    """Write all dashboards into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, dashboard in (("pipeline", pipeline.dashboard()), ("model", model.dashboard())):
        text = JSONEncoder(indent=2, sort_keys=True).encode(dashboard.build())
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else _FOLDER)
