"""Reads the thresholds of alerts, so that the dashboards show the same numbers."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

RULES = Path(__file__).parents[1] / "docker" / "prometheus" / "rules.yml"
_COMPARED = re.compile(r"[<>]=?\s*(\d+(?:\.\d+)?)")


@cache
def _alerts() -> dict[str, str]:
    groups: list[Any] = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    return {rule["alert"]: rule["expr"] for rule in rules if "alert" in rule}


def limit(alert: str) -> float:
    """Return the first number that an alert's expression compares with.

    Raises
    ------
    ValueError
        There is no such alert, or it compares with no number.
    """
    found = _COMPARED.search(_alerts().get(alert, ""))
    if found is None:
        raise ValueError(f"expected an alert of {RULES.name} with a number, got {alert}")
    return float(found[1])
