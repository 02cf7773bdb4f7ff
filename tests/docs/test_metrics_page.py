"""docs/metrics.md against the metrics."""

import re

from doc_pages import code, read, rows, section
from prometheus_client import CollectorRegistry

from faust_oslrau.app.metrics import Metrics, NetworkSize
from faust_oslrau.app.pipeline import ExpectedField

PAGE = "docs/metrics.md"
ROWS = {code(row[0])[0]: row for row in rows(read(PAGE), 3)}
OF_WORKERS = {code(row[0])[0] for row in rows(section(PAGE, "Worker"), 3)}


def exported():
    """Return all families of a worker that has a partition with a network."""
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    partition = metrics.of_partition("features", 0)
    changes = {"mixture": 0, "multivariate_leaf": 0, "denied": 0}
    kinds = dict.fromkeys(("sum", "product", "leaf", "multivariate_leaf"), 0)
    partition.set_network(NetworkSize(kinds, 0, 0, 0, changes))
    partition.entities = 0
    partition.silent_entities, partition.silence_limit, partition.last_timestamp = 0, 60.0, 0.0
    partition.expected_fields["a"] = ExpectedField(1.0, 0.0, -2.0, 2.0)
    return [family for family in registry.collect() if family.name.startswith("oslrau_")]


def test_every_metric_is_explained_and_exists():
    names = {family.name + "_total" * (family.type == "counter") for family in exported()}
    assert ROWS.keys() == names


def test_the_types_are_as_it_says():
    (told,) = re.findall(
        r"`_total`;\s(.*) are histograms, all others gauges", read(PAGE), re.DOTALL
    )
    histograms = {family.name for family in exported() if family.type == "histogram"}
    assert histograms == {*code(told)}
    assert {family.type for family in exported()} == {"counter", "gauge", "histogram"}


def test_the_labels_are_the_documented_ones():
    found = 0
    for family in exported():
        name = family.name + "_total" * (family.type == "counter")
        documented = set(code(ROWS[name][1]))
        if name not in OF_WORKERS:
            documented |= {"topic", "partition"}
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == documented, family.name
            found += 1
    assert found > 100


def test_the_values_of_labels_are_named():
    for family in exported():
        row = ROWS[family.name + "_total" * (family.type == "counter")]
        for label in {"outcome", "kind", "stage"} & set(code(row[1])):
            values = {sample.labels[label] for sample in family.samples}
            assert values and values <= set(code(row[2])), family.name
