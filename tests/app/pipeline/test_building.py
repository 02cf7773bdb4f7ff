"""Compilation of what a pipeline needs, before its records come."""

from itertools import permutations

import pytest

from faust_oslrau.app.pipeline import compile_pipeline
from faust_oslrau.app.settings import Settings

FIELDS = ("status", "region", "zone", "latency")
TEXTS = (("status", "category"), ("region", "category"), ("zone", "category"))


@pytest.mark.parametrize("features", [*permutations(FIELDS)][::7])
@pytest.mark.parametrize(
    "named",
    [
        {"transforms": (("latency", "log"),)},
        {"kinds": (*TEXTS, ("latency", "count"))},
        {"directions": (("latency", "high"),)},
    ],
)
def test_chosen_fields_may_have_any_order(features, named):
    compile_pipeline(Settings(**{"features": features, "kinds": TEXTS} | named))
