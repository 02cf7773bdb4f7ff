"""Where the snapshots of tests' workers are, and their pace, which is no setting."""

from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

from faust_oslrau.app import pace
from faust_oslrau.app.settings import Settings

PACE = ("commit_seconds", "batch_records", "snapshot_records", "metadata_seconds")
_VARIABLE = "TEST_PACE"


def split(changes: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the changes of settings, and of the pace."""
    own = {name: value for name, value in changes.items() if name in PACE}
    return {name: value for name, value in changes.items() if name not in PACE}, own


def change_pace(**changes: float) -> dict[str, float]:
    """Change the pace of this process, and return what it was."""
    before = {name: getattr(pace, name.upper()) for name in changes}
    for name, value in changes.items():
        setattr(pace, name.upper(), type(before[name])(value))
    return before


def pace_variable(changes: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment of a process that takes a pace."""
    return {_VARIABLE: ",".join(f"{name}={value}" for name, value in changes.items())}


def take_pace(environ: MutableMapping[str, str]) -> None:
    """Change the pace of this process as its environment says."""
    found = [part.split("=") for part in environ.pop(_VARIABLE, "").split(",") if part]
    change_pace(**{name: float(value) for name, value in found})


def snapshots_in(kind: str, settings: Settings, folder: Path) -> str:
    """Return the setting `snapshots` for a topic or a folder of the test's own, or off."""
    where = {"topic": f"topic:{settings.app_id}.snapshots", "folder": f"folder:{folder}/snapshots"}
    return where.get(kind, kind)
