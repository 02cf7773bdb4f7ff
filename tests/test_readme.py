"""The README against the code: its examples run, and what it names exists."""

import doctest
import re
from dataclasses import fields
from pathlib import Path

from prometheus_client import CollectorRegistry

from faust_oslrau.app.metrics import Metrics
from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import Reason

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return README.split(f"## {title}\n")[1].split("\n## ")[0]


def test_the_examples_give_what_they_show():
    example = doctest.DocTestParser().get_doctest(README, {}, "README", "README.md", 0)
    runner = doctest.DocTestRunner()
    runner.run(example)
    assert runner.tries > 0 and runner.failures == 0


def test_the_table_of_settings_holds_all_of_them_with_their_defaults():
    rows = re.findall(r"^\| (`.*?) \| (.*?) \|", section("On your own Kafka"), re.MULTILINE)
    named = {name: cells for cells, _ in rows for name in re.findall(r"`(\w+)`", cells)}
    plain = {entry.name for entry in fields(Settings) if "kind" in entry.metadata}
    assert plain <= named.keys()
    defaults = {name: cell for cells, cell in rows for name in re.findall(r"`(\w+)`", cells)}
    for name in ("batch_size", "alarm_rate", "max_record_bytes", "max_poll_records", "app_id"):
        assert defaults[name].strip("`") == str(getattr(Settings(), name))


def test_every_reason_is_explained():
    table = re.findall(r"^\| `(\w+)` \| (?:is|has|holds|lacks)", README, re.MULTILINE)
    assert sorted(table) == sorted(reason.value for reason in Reason)


def test_every_metric_is_named_and_exists():
    registry = CollectorRegistry()
    Metrics(registry)
    exported = {family.name for family in registry.collect() if family.name.startswith("oslrau_")}
    text = section("Pages and metrics").replace("`_", "`oslrau_network_")
    named = {re.sub("_total$", "", name) for name in re.findall(r"`(oslrau_\w+)", text)}
    assert named - {"oslrau_"} == exported
