"""What the demonstration shows on a terminal and without one."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from faust_oslrau.app.demo.accounting import Account, Place
from faust_oslrau.app.demo.collector import Alarm
from faust_oslrau.app.demo.incidents import DemoIncident
from faust_oslrau.app.demo.observer import Network, Situation
from faust_oslrau.app.demo.view import LineView, line, open_view, picture, sparkline
from faust_oslrau.topics import Reason


@pytest.fixture
def situation() -> Situation:
    """A late moment, in which every part of the picture is full."""
    account = Account(4)
    account.add_sent(3, 0, ["broken_correlation"] * 123_456)
    for offset in range(20):
        account.add_score(Place(3, offset), True)
    for offset, reason in enumerate(Reason, start=20):
        account.add_dead_letter(Place(3, offset), reason.value, "expected")
    for first in (100, 5000, 123_000):
        is_open, fields = first == 5000, ("ambient.temperature", "motor.temperature", "speed")
        place = (f"features/3/{first}", 3, None, first, first, first + 40)
        incident = DemoIncident(*place, is_open, 76.2, "critical", fields)
        account.add_incident(incident)
    blamed = [("ambient.temperature", 12.5), ("motor.temperature", 3.0), ("speed", 0.5)]
    alarms = [Alarm(Place(3, offset), "machine-16", -123.4, blamed) for offset in range(20)]
    return Situation(
        title="Demo at http://127.0.0.1:40231, the embedded broker 127.0.0.1:33167, 4 partitions",
        phase="streaming simulated machines", elapsed=12.0, seconds=30.0, account=account,
        sent_rate=5000.0, answered_rate=4990.0, is_paused=True,
        network=Network({"sum": 88, "product": 510, "leaf": 4128, "multivariate_leaf": 98}, 13),
        log_likelihoods=[-30.0 + k / 4 for k in range(60)], alarms=alarms,
        alarming=[("machine-16", 12), ("machine-07", 5), ("machine-[3]", 3)],
    )  # fmt: skip


def test_the_picture_fits_a_terminal_and_shows_all_its_parts(situation: Situation) -> None:
    console = Console(width=80, file=StringIO(), record=True)
    console.print(picture(situation))
    lines = console.export_text().splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80
    assert "http://127.0.0.1:40231" in lines[0]
    title, _, *incidents = lines[2:7]
    assert "Incidents: 1 open, 2 closed" in title
    assert [row.split()[1:3] for row in incidents] == [
        ["3/5000", "open"], ["3/123000", "closed"], ["3/100", "closed"]
    ]  # fmt: skip
    assert all("critical 76" in row and "ambient.temperature" in row for row in incidents)
    assert all("broken_correlation" in row for row in incidents)
    (alarm,) = [row for row in lines if "3/19 " in row]
    assert "ambient.temperature, m" in alarm and "broken_correlation" in alarm
    keys = "most anomalies: machine-16 12, machine-07 5, machine-[3] 3"
    assert any(keys in row for row in lines)


def test_compiling_is_a_bar_on_a_terminal_and_one_line_elsewhere(situation: Situation) -> None:
    phases = [f"compiling: {done} of some 3" for done in (1, 2, 3)]
    steps = [replace(situation, phase=phase, compiled=0.5) for phase in phases]
    terminal = Console(width=80, file=StringIO(), record=True)
    terminal.print(picture(steps[1]))
    first, second, *_ = terminal.export_text().splitlines()
    assert first.count("━") == 7 and "compiling: 2 of some 3" in second
    output = StringIO()
    view = open_view(Console(file=output, width=40))
    assert isinstance(view, LineView)
    with view:
        for step in (*steps, *2 * [replace(situation, phase="streaming")]):
            view.show(step)
    assert output.getvalue().splitlines() == [situation.title, "streaming"]


def test_a_sparkline_goes_from_the_lowest_to_the_highest() -> None:
    assert sparkline([-3.0, -1.0, -1.9, -3.0]) == "▁█▅▁"
    assert sparkline([5.0]) == "▁"
    assert sparkline([]) == ""


def test_a_line_says_how_many_records_wait(situation: Situation) -> None:
    assert "sent 123,456" in line(situation)
    assert f"lag {123_456 - 20 - len(Reason):,}" in line(situation)
