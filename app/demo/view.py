"""Shows a demo as a picture on a terminal, or as plain lines without one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from time import monotonic
from typing import Protocol, Self

from rich import box
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from .collector import Alarm
from .faults import FAULTS
from .incidents import DemoIncident
from .observer import Situation

# How often to print the situation without a terminal.
_SECONDS_BETWEEN_LINES = 2.0
_INCIDENTS_SHOWN = 3
_ALARMS_SHOWN = 3
_BLAMED_SHOWN = 2
_COLOURS = {"minor": "green", "major": "yellow", "critical": "bold red"}
_BARS = "▁▂▃▄▅▆▇█"
_SPARKLINE = 40
_BAR_WIDTH = 14


class View(AbstractContextManager["View"], Protocol):
    """Shows situations."""

    def show(self, situation: Situation) -> None:
        """Show a situation."""


def open_view(console: Console) -> View:
    """Return the view that suits a console."""
    return TerminalView(console) if console.is_terminal else LineView(console)


class TerminalView:
    """A picture on the terminal's alternate screen, redrawn for each situation."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False, screen=True)

    def show(self, situation: Situation) -> None:
        """Draw the picture."""
        self._live.update(picture(situation), refresh=True)

    def __enter__(self) -> Self:
        """Take the terminal."""
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the picture."""
        self._live.stop()


class LineView:
    """A line every few seconds, and one for each new phase."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._title = ""
        self._phase = ""
        self._last = 0.0

    def show(self, situation: Situation) -> None:
        """Print a line if one is due."""
        if situation.title != self._title:
            self._title = situation.title
            self._print(situation.title)
        is_due = monotonic() - self._last >= _SECONDS_BETWEEN_LINES
        if situation.phase != self._phase and (situation.compiled is None or is_due):
            self._phase = situation.phase
            self._print(situation.phase)
        elif situation.account.sent and is_due:
            self._print(line(situation))

    def _print(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True)
        self._last = monotonic()

    def __enter__(self) -> Self:
        """Nothing to prepare."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to undo."""


def line(situation: Situation) -> str:
    """Return a situation in one line."""
    account = situation.account
    parts = [
        f"{situation.elapsed:.0f} s",
        f"sent {account.sent:,}",
        f"scored {account.scored:,}",
        f"rejected {account.rejected:,}",
        f"{situation.answered_rate:,.0f}/s",
        f"lag {account.waiting:,}",
        f"log-likelihood {_last(situation.log_likelihoods)}",
        f"nodes {situation.network.n_nodes:,}",
        f"anomalies {len(account.alarms):,}",
        f"incidents {len(account.incidents):,}",
    ]
    return "  ".join(parts)


def picture(situation: Situation) -> RenderableType:
    """Return a situation as a picture of 24 lines."""
    upper = Table.grid(expand=True)
    upper.add_column(ratio=3)
    upper.add_column(ratio=4)
    upper.add_row(_records(situation), _model(situation))
    lower = _anomalies(situation), _dead_letters(situation)
    return Group(_title(situation), _incidents(situation), upper, *lower)


def sparkline(values: Sequence[float]) -> str:
    """Return a bar for each value, scaled from the lowest to the highest value."""
    if not values:
        return ""
    low, high = min(values), max(values)
    step = (high - low) / (len(_BARS) - 1) or 1.0
    return "".join(_BARS[round((value - low) / step)] for value in values)


def _title(situation: Situation) -> RenderableType:
    time: RenderableType = ""
    if situation.compiled is not None:
        time = ProgressBar(total=1.0, completed=situation.compiled, width=_BAR_WIDTH)
    elif situation.elapsed:
        time = f"{situation.elapsed:.0f} s"
        if situation.seconds is not None:
            time = f"{min(situation.elapsed, situation.seconds):.0f} of {situation.seconds:.0f} s"
    row = Table.grid(expand=True, padding=(0, 1))
    row.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    row.add_column(no_wrap=True, justify="right")
    row.add_row(Text(situation.title, "bold"), time)
    row.add_row(Text(situation.phase, "cyan"), Text("Ctrl-C ends it", "dim"))
    return row


def _records(situation: Situation) -> RenderableType:
    account = situation.account
    rows = Table.grid(padding=(0, 2))
    rows.add_column()
    rows.add_column(justify="right", min_width=9)
    rows.add_column(justify="right", style="dim")
    rows.add_row("sent", f"{account.sent:,}", f"{situation.sent_rate:,.0f}/s")
    rows.add_row("scored", f"{account.scored:,}", f"{situation.answered_rate:,.0f}/s")
    rows.add_row("rejected", f"{account.rejected:,}", "")
    paused = "paused" if situation.is_paused else ""
    rows.add_row("lag", f"{account.waiting:,}", paused)
    return _panel("Records", rows)


def _model(situation: Situation) -> RenderableType:
    network = situation.network
    kinds = {"sums": "sum", "products": "product"}
    counts = [f"{network.nodes.get(kind, 0):,} {name}" for name, kind in kinds.items()]
    lines = Group(
        f"{network.n_nodes:,} nodes, depth {network.depth}",
        Text(", ".join([*counts, f"{network.n_leaves:,} leaves"]), "dim"),
        f"log-likelihood {_last(situation.log_likelihoods)} nats",
        Text(sparkline(situation.log_likelihoods[-_SPARKLINE:]), "green"),
    )
    return _panel("Models of all partitions", lines)


def _incidents(situation: Situation) -> RenderableType:
    rows = Table(box=None, expand=True, pad_edge=False, header_style="dim")
    rows.add_column("since", no_wrap=True, min_width=8)
    rows.add_column("state", no_wrap=True, min_width=6)
    rows.add_column("severity", no_wrap=True, min_width=11)
    rows.add_column("most blamed fields", no_wrap=True, ratio=1)
    rows.add_column("injected", no_wrap=True)
    incidents = situation.account.incidents.values()
    shown = sorted(reversed(incidents), key=lambda incident: not incident.is_open)
    for incident in shown[:_INCIDENTS_SHOWN]:
        rows.add_row(*_incident(incident, situation))
    for _ in range(_INCIDENTS_SHOWN - len(shown)):
        rows.add_row()  # the picture keeps its height
    n_open = sum(incident.is_open for incident in incidents)
    return _panel(f"Incidents: {n_open:,} open, {len(incidents) - n_open:,} closed", rows)


def _incident(incident: DemoIncident, situation: Situation) -> list[RenderableType]:
    injected = ", ".join(sorted(situation.account.injected_in(incident)))
    return [
        f"{incident.partition}/{incident.first}",
        Text("open", "bold") if incident.is_open else Text("closed", "dim"),
        Text(f"{incident.severity_name} {incident.severity:.0f}", _COLOURS[incident.severity_name]),
        Text(", ".join(incident.blamed[:_BLAMED_SHOWN]), "yellow"),
        Text(injected, "red") if injected else Text("-", "dim"),
    ]


def _anomalies(situation: Situation) -> RenderableType:
    rows = Table(box=None, expand=True, pad_edge=False, header_style="dim")
    rows.add_column("record", no_wrap=True, min_width=8)
    rows.add_column("key", no_wrap=True)
    rows.add_column("log-lik.", justify="right", no_wrap=True)
    rows.add_column("most blamed fields", no_wrap=True, ratio=1)
    rows.add_column("injected", no_wrap=True)
    shown = list(reversed(situation.alarms))[:_ALARMS_SHOWN]
    for alarm in shown:
        rows.add_row(*_alarm(alarm, situation))
    for _ in range(_ALARMS_SHOWN - len(shown)):
        rows.add_row()  # the picture keeps its height
    most = ", ".join(f"{key} {count:,}" for key, count in situation.alarming)
    title = f"Last of {len(situation.account.alarms):,} anomalies"
    return _panel(title, rows, below=f"most anomalies: {most}" if most else None)


def _alarm(alarm: Alarm, situation: Situation) -> list[RenderableType]:
    label = situation.account.labels.get(alarm.place)
    return [
        str(alarm.place),
        alarm.key,
        f"{alarm.log_likelihood:.1f}",
        Text(", ".join(name for name, _ in alarm.blamed[:_BLAMED_SHOWN]), "yellow"),
        Text(label, "red") if label in FAULTS else Text("-", "dim"),
    ]


def _dead_letters(situation: Situation) -> RenderableType:
    reasons = situation.account.reasons.most_common()
    counts = Columns([f"{reason} {count:,}" for reason, count in reasons], padding=(0, 3))
    return _panel("Dead letters by reason", counts if reasons else "none", height=4)


def _panel(
    title: str, content: RenderableType, height: int | None = None, below: str | None = None
) -> Panel:
    return Panel(
        content,
        title=title,
        title_align="left",
        subtitle=None if below is None else Text(below),
        subtitle_align="left",
        box=box.ROUNDED,
        border_style="dim",
        height=height,
    )


def _last(values: Sequence[float]) -> str:
    return f"{values[-1]:.1f}" if values else "-"
