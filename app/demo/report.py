"""Prints the summary of a demo."""

from __future__ import annotations

from rich.columns import Columns
from rich.console import Console
from rich.table import Table

from faust_oslrau.topics.fields import listed

from .summary import Caught, Injected, Summary

_NEXT = (
    "Records of your own: faust-oslrau advise FILE --out NAME.toml writes settings for them, which "
    "demo --csv FILE --settings NAME.toml takes."
)
_WRONG = {
    "missing": "neither scored nor dead-lettered",
    "duplicates": "answered more than once",
    "strangers": "answered but never sent",
    "unmatched": "anomalous without exactly one anomaly message",
}


def print_summary(console: Console, summary: Summary) -> None:
    """Print a summary."""
    rows = Table.grid(padding=(0, 2))
    rows.add_column()
    rows.add_column(justify="right")
    rows.add_column()
    rows.add_row("records in", f"{summary.records:,}", f"in {summary.seconds:.1f} s")
    rows.add_row("scored", f"{summary.scored:,}", f"{summary.rate:,.0f} records a second")
    rows.add_row("rejected", f"{sum(summary.rejected.values()):,}", "to the dead-letter topic")
    rows.add_row("fields", f"{len(summary.fields):,}", listed(summary.fields))
    if summary.left_out:
        rows.add_row("left out", f"{len(summary.left_out):,}", listed(summary.left_out))
    if summary.nodes:  # else it ended before they were measured
        rows.add_row("nodes", f"{summary.nodes:,}", "of all partitions' networks")
    injected = f"{summary.incidents_with_faults:,} with injected anomalies"
    rows.add_row("incidents", f"{summary.incidents:,}", injected if summary.injected else "")
    rows.add_row("anomalies", f"{summary.alarms:,}", _judged(summary))
    console.print(rows, highlight=False)
    console.print(Columns(_tables(summary), padding=(1, 4)), highlight=False)
    if summary.latest_injected:
        console.print(_latest(summary), "", highlight=False)
    console.print(verdict(summary), style="green" if summary.is_good else "bold red")
    console.print(_NEXT, style="dim", highlight=False)
    if summary.worker_failure is not None:
        failure = f"The worker ended unexpectedly:\n{summary.worker_failure}"
        console.print(failure, highlight=False, soft_wrap=True)


def verdict(summary: Summary) -> str:
    """Return a sentence that tells whether every record is accounted for, and which are not."""
    rejected = sum(summary.rejected.values())
    if not summary.records:
        return "No record was sent."
    if summary.is_accounted and not summary.scored:
        return f"No record was scored, all are dead letters. The first: {summary.first_rejection}"
    if summary.is_accounted:
        return (
            f"Every record is accounted for: {summary.records:,} sent = "
            f"{summary.scored:,} scored + {rejected:,} dead letters, each once."
        )
    counts = {name: getattr(summary, name) for name in _WRONG}
    wrong = [f"{counts[name]:,} {text}" for name, text in _WRONG.items() if counts[name]]
    examples = ", ".join(summary.examples)
    return f"Not accounted for: {'; '.join(wrong)}; such as {examples} (partition/offset)."


def _judged(summary: Summary) -> str:
    if not summary.injected:
        return f"among the most unusual {summary.alarm_rate:.2%} of recent records"
    others, expected = summary.other_alarms, summary.expected_alarms
    return (
        f"{summary.alarms - others:,} injected ones; {others:,} of {summary.usual:,} usual "
        f"records, where {expected:,.0f} are expected at the alarm rate {summary.alarm_rate:.2%}"
    )


def _tables(summary: Summary) -> list[Table]:
    tables = []
    if summary.injected:
        tables.append(_by_kind(summary))
    if summary.rejected or summary.malformed:
        tables.append(_rejected(summary))
    return tables


def _latest(summary: Summary) -> Table:
    rows = _table("the last of them", "partition/offset")
    rows.add_column("what the worker said")
    rows.add_column("incident")
    for each in summary.latest_injected:
        rows.add_row(each.kind, str(each.place), _said(each), _found(each))
    return rows


def _said(each: Injected) -> str:
    if each.blamed is not None:
        field, value, expected = each.blamed
        return f"{field} is {value:.4g}" + (
            "" if expected is None else f", expected {expected:.4g}"
        )
    if each.is_alarm:
        return "unusual as a whole"
    return "nothing" if each.incident is None else f"unusual: {', '.join(each.incident.blamed)}"


def _found(each: Injected) -> str:
    """Return how severe the incident is, of which machine, and when it opened."""
    if each.incident is None or each.records_until_open is None:
        return "none"
    after = each.records_until_open
    when = f"after {after:,} records" if after > 0 else "at once" if after == 0 else "open before"
    whose = "" if each.incident.entity is None else f" of {each.incident.entity}"
    return f"{each.incident.severity_name}{whose}, {when}"


def _by_kind(summary: Summary) -> Table:
    rows = _table("injected anomalies", "caught", "missed", "recall")
    for kind, count in summary.injected.items():
        rows.add_row(kind, *_shown(count))
    caught = sum(count.caught for count in summary.injected.values())
    missed = sum(count.missed for count in summary.injected.values())
    rows.add_row("all", *_shown(Caught(caught, missed)), style="bold")
    return rows


def _shown(count: Caught) -> tuple[str, str, str]:
    recall = count.caught / (count.caught + count.missed)
    return f"{count.caught:,}", f"{count.missed:,}", f"{recall:.0%}"


def _rejected(summary: Summary) -> Table:
    if not summary.malformed:
        rows = _table(f"dead letters (the first: {summary.first_rejection})", "rejected")
        for reason, rejected in summary.rejected.items():
            rows.add_row(reason, f"{rejected:,}")
        return rows
    rows = _table("malformed messages", "injected", "rejected")
    for reason in sorted(summary.malformed.keys() | summary.rejected.keys()):
        sent, rejected = summary.malformed.get(reason, 0), summary.rejected.get(reason, 0)
        rows.add_row(reason, f"{sent:,}", f"{rejected:,}")
    return rows


def _table(what: str, *counts: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(what)
    for name in counts:
        table.add_column(name, justify="right")
    return table
