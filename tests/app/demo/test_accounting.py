"""The demonstration's account of every record, and its summary."""

from collections.abc import Callable
from io import StringIO

import pytest
from rich.console import Console

from faust_oslrau.app.demo.accounting import Account, Blamed, Place
from faust_oslrau.app.demo.incidents import DemoIncident
from faust_oslrau.app.demo.report import print_summary, verdict
from faust_oslrau.app.demo.summary import Caught, Summary, summarize


def summary_of(account: Account) -> Summary:
    return summarize(
        account, broker="127.0.0.1:9092", topics=["features"], seconds=2.0, fields=["speed"],
        left_out=["at (times)"], nodes=7, alarm_rate=0.001, worker_failure=None,
    )  # fmt: skip


def printed(summary: Summary) -> str:
    """Return the words of a printed summary, with one space between them."""
    console = Console(width=160, record=True, file=StringIO())
    print_summary(console, summary)
    return " ".join(console.export_text().split())


@pytest.fixture
def account() -> Account:
    """Four records in partition 0 and two in partition 1, not answered yet."""
    account = Account(2)
    account.add_sent(0, 0, [None, "spike", "spike", "bare_nan"])
    account.add_sent(1, 0, [None, None])
    return account


def answer_all(account: Account) -> None:
    account.add_score(Place(0, 0), False)
    account.add_score(Place(0, 1), True)
    account.add_anomaly(Place(0, 1), Blamed("speed", 9.0, 1.5))
    account.add_score(Place(0, 2), False)
    account.add_dead_letter(Place(0, 3), "not_json", "expected JSON")
    account.add_score(Place(1, 0), True)
    account.add_anomaly(Place(1, 0))
    account.add_score(Place(1, 1), False)


def test_an_account_is_complete_when_every_record_is_answered_once(account: Account) -> None:
    answer_all(account)
    summary = summary_of(account)
    assert summary.is_accounted
    assert account.waiting == 0
    assert (summary.records, summary.scored, summary.rejected) == (6, 5, {"not_json": 1})
    assert verdict(summary).startswith("Every record is accounted for: 6 sent = 5 scored + 1")


def test_anomalies_are_judged_by_what_was_injected(account: Account) -> None:
    answer_all(account)
    summary = summary_of(account)
    assert summary.injected == {"spike": Caught(caught=1, missed=1)}
    assert (summary.alarms, summary.other_alarms) == (2, 1)
    assert summary.expected_alarms == pytest.approx(0.001 * 3)
    assert summary.malformed == {"not_json": 1}
    found, missed = summary.latest_injected
    assert found == ("spike", Place(0, 1), True, Blamed("speed", 9.0, 1.5), None)
    assert missed == ("spike", Place(0, 2), False, None, None)
    assert summary.to_json()["latest_injected"][0] == {
        "kind": "spike", "partition": 0, "offset": 1, "alarm": True,
        "blamed": {"field": "speed", "value": 9.0, "expected": 1.5},
        "incident": None, "records_until_open": None,
    }  # fmt: skip
    shown = printed(summary)
    assert "1 injected ones; 1 of 3 usual records, where 0 are expected" in shown
    assert "spike 0/1 speed is 9, expected 1.5 none spike 0/2 nothing none" in shown


def test_incidents_are_judged_by_what_was_injected(account: Account) -> None:
    event = {
        "event": "incident", "incident": "features/0/1", "partition": 0, "state": "opened",
        "start_offset": 0, "opened_offset": 1, "latest_offset": 2,
        "severity": 50.1, "severity_name": "major",
        "contributions": [{"field": "speed"}, {"field": "torque"}],
    }  # fmt: skip
    fault = DemoIncident.of_event(event)
    account.add_incident(fault)
    other = {"incident": "features/1/0", "partition": 1, "start_offset": 0, "latest_offset": 1}
    other |= {"opened_offset": 0}
    account.add_incident(DemoIncident.of_event(event | other))
    account.add_incident(DemoIncident.of_event(event | {"state": "closed"}))
    assert account.incidents["features/0/1"] == fault._replace(is_open=False)
    assert account.injected_in(fault) == {"spike"}
    summary = summary_of(account)
    assert (summary.incidents, summary.incidents_with_faults) == (2, 1)


def test_an_injected_anomaly_is_told_with_the_incident_of_its_machine() -> None:
    account = Account(1)
    account.add_sent(0, 0, [None, "stuck", "shift", "spike"], [b"a", b"a", b"b", b"c"])
    for offset in range(4):
        account.add_score(Place(0, offset), False)
    event = {
        "event": "incident", "partition": 0, "state": "opened", "start_offset": 1,
        "latest_offset": 3, "severity": 50.1, "contributions": [{"field": "speed"}],
    }  # fmt: skip
    for machine, opened, severity in (("b", 2, "minor"), ("a", 3, "major")):
        place = {"incident": f"features/0/{opened}", "opened_offset": opened, "entity": machine}
        account.add_incident(DemoIncident.of_event(event | place | {"severity_name": severity}))
    assert account.injected_in(account.incidents["features/0/3"]) == {"stuck"}
    summary = summary_of(account)
    assert [each["incident"] for each in summary.to_json()["latest_injected"]] == [
        "features/0/3", "features/0/2", None,
    ]  # fmt: skip
    shown = printed(summary)
    assert (
        "stuck 0/1 unusual: speed major of a, after 2 records "
        "shift 0/2 unusual: speed minor of b, at once spike 0/3 nothing none"
    ) in shown


def test_a_record_without_an_answer_is_missing(account: Account) -> None:
    account.add_score(Place(0, 0), False)
    assert account.waiting == 5
    assert account.missing() == [(0, 1), (0, 2), (0, 3), (1, 0), (1, 1)]
    summary = summary_of(account)
    assert not summary.is_accounted
    assert "5 neither scored nor dead-lettered" in verdict(summary)
    assert "0/1" in verdict(summary)


@pytest.mark.parametrize(
    "answer",
    [
        lambda account: account.add_score(Place(0, 0), False),  # twice
        lambda account: account.add_dead_letter(Place(1, 1), "not_json", ""),  # it was scored
        lambda account: account.add_score(Place(1, 2), False),  # nothing was sent there
        lambda account: account.add_anomaly(Place(0, 1)),  # twice
        lambda account: account.add_anomaly(Place(0, 2)),  # its score is not anomalous
    ],
)
def test_an_answer_too_many_is_noticed(account: Account, answer: Callable[[Account], None]) -> None:
    answer_all(account)
    answer(account)
    assert not summary_of(account).is_accounted


def test_neither_early_answers_nor_gaps_in_the_log_leave_a_record_missing() -> None:
    account = Account(1)
    account.add_score(Place(0, 1), False)  # before the producer knows that it was sent
    assert account.waiting == 0
    account.add_sent(0, 0, [None, None])
    account.add_sent(0, 5, [None])
    for offset in (0, 5):
        account.add_score(Place(0, offset), False)
    assert summary_of(account).is_accounted


def test_records_of_which_none_was_scored_are_accounted_for_but_not_good() -> None:
    assert verdict(summary_of(Account(1))) == "No record was sent."
    account = Account(1)
    account.add_sent(0, 0, [None, None])
    for offset in range(2):
        account.add_dead_letter(Place(0, offset), "no_features", f"expected fields, {offset}")
    summary = summary_of(account)
    assert summary.is_accounted and not summary.is_good
    assert verdict(summary).endswith("all are dead letters. The first: 0/0: expected fields, 0")
    shown = printed(summary)
    assert "injected" not in shown and "no_features" in shown
    assert "at (times)" in shown and "speed" in shown
