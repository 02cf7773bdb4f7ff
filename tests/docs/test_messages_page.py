"""docs/messages.md against messages that the pipeline makes."""

import re
from importlib.metadata import version
from operator import attrgetter

import jsonschema
import orjson
import pytest
from doc_pages import code, rows, section, texts

from faust_oslrau.app.settings import Settings
from faust_oslrau.topics import Reason
from faust_oslrau.topics.shortening import without_largest
from schemas.json_schema import schema_of
from schemas.members import EVENTS, Kind

PAGE = "docs/messages.md"
MEMBERS = rows(section(PAGE, "Scores, anomalies and events"), 4)
LISTS = {code(row[0])[0]: row[1] for row in MEMBERS if row[2] == "list"}
KINDS = ("score", "anomaly", "incident", "silence", "rate", "field", "drift", "entity")


def documented(kind):
    """Return the members of a kind of message, in the table's order."""
    return [name for name, of in listed(kind).items() if of != "text"]


def listed(kind):
    names = {kind, "event"} if kind in EVENTS else {kind}
    return {code(row[0])[0]: row[2] for row in MEMBERS if names & {*of(row).split(", ")}}


def of(row):
    """Return the kinds that have a member; for one inside a list, those that have the list."""
    return row[1] or LISTS[code(row[0])[0].partition("[]")[0]]


def flat(message):
    """Return members and values of a message, those of lists too, in their order."""
    for name, value in message.items():
        yield name, value
        for inner in value if name in ("contributions", "aspects", "forecast") else ():
            yield from ((f"{name}[].{member}", found) for member, found in inner.items())


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_has_every_member_in_the_order_of_the_message(kind, messages):
    assert messages[kind]
    found = {name: None for message in messages[kind] for name, _ in flat(message)}
    order = documented(kind)
    if "event" in order:  # the event comes first, but the table begins with what all have
        order.insert(0, order.pop(order.index("event")))
    assert list(found) == order


def test_the_first_records_have_no_density_and_no_p_value_for_as_long_as_it_says(messages):
    scores = messages["score"]
    for name in ("log_likelihood", "p_value"):
        (row,) = [row for row in MEMBERS if row[0] == f"`{name}`"]
        (first,) = re.findall(r"the first (\d+) records", row[3])
        missing = [score["offset"] for score in scores if score[name] is None]
        assert missing == list(range(int(first)))
    (row,) = [row for row in MEMBERS if row[0] == "`warming_up`"]
    assert f"the first {sum(score['warming_up'] for score in scores)} of" in row[3]


def test_only_anomalies_have_contributions_and_they_are_sent_twice(messages):
    flagged = [score for score in messages["score"] if "contributions" in score]
    assert flagged == [score for score in messages["score"] if score["is_anomaly"]]
    without = [{k: v for k, v in each.items() if k != "record"} for each in messages["anomaly"]]
    assert without == flagged


@pytest.mark.parametrize("kind", [*KINDS, "dead letter"])
def test_the_headers_are_the_documented_ones(kind, sent, processed):
    whole = processed.dead_letters if kind == "dead letter" else sent[kind]
    shortened = [] if kind == "dead letter" else map(without_largest, whole)
    found = {name for message in (*whole, *shortened) for name, _ in message.headers}
    assert found == {name for name, of in listed(kind).items() if of == "text"}


def test_every_reason_is_explained():
    table = [code(row[0])[0] for row in rows(section(PAGE, "Dead letters"), 2)]
    assert sorted(table) == sorted(reason.value for reason in Reason)


def test_no_member_is_newer_than_the_installed_version():
    installed = tuple(map(int, version("faust-oslrau").split(".")[:2]))
    since = {each for row in MEMBERS for each in re.findall(r"Since ([\d.]+)\.$", row[3])}
    assert since and all(tuple(map(int, each.split("."))) <= installed for each in since)


def test_the_topics_are_the_defaults_of_their_settings():
    for row in rows(section(PAGE, "What is written"), 4):
        default = attrgetter(code(row[1])[0])(Settings())
        assert code(row[0])[0] == default.removeprefix("topic:")


@pytest.mark.parametrize("page", ["README.md", PAGE])
def test_the_example_messages_follow_their_schemas(page):
    found = [orjson.loads(text) for text in texts(page, "json")]
    assert found
    for message in found:
        kind = message.get("event", "anomaly" if "record" in message else "score")
        assert {name for name, _ in flat(message)} <= set(documented(kind))
        jsonschema.validate(message, schema_of(Kind(kind)))
