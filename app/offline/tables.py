"""Lays out comparisons and evaluations as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

from faust_oslrau.learner.stream import WARM_UP

from .comparison import GROUPS, ComparedAlarm, Comparison, Pair
from .evaluation import Evaluation

# Rows of a table that may be long; JSON has all.
_MOST_ALARMS = 5
_MOST_FAULTS = 20
_GROUPS = dict(zip(GROUPS, ("in both", "only in A", "only in B"), strict=True))

Rows = list[Sequence[str]]


def comparison_text(found: Comparison) -> str:
    """Return the tables of a comparison."""
    a, b = found.logs
    parts = [
        f"A is {a.name}, B is {b.name}.\n{a.records:,} records, {len(found.partition):,} compared: "
        f"scored under both, after the first {WARM_UP} of a partition.",
        aligned(_settings(found)),
        aligned(_figures(found), left=(0, 3)),
        aligned(_stretches(found)),
        *(_alarms(found, group) for group in GROUPS),
    ]
    return "\n\n".join(parts)


def evaluation_text(found: Sequence[Evaluation]) -> str:
    """Return the tables of the evaluations of one labelled log."""
    rows: Rows = [
        ("", *(each.log.name for each in found)),
        ("records", *(f"{each.log.records:,}" for each in found)),
        ("rejected", *(f"{each.log.rejected.total():,}" for each in found)),
        (f"labelled, after the first {WARM_UP}", *(f"{each.labelled:,}" for each in found)),
        ("others", *(f"{each.others:,}" for each in found)),
        ("area under the ROC curve", *(_number(each.curve.area_under_roc, 4) for each in found)),
        ("average precision", *(_number(each.curve.average_precision, 4) for each in found)),
        ("alarm rate", *(f"{each.log.settings.alarm_rate:g}" for each in found)),
        ("alarms", *(f"{each.alarms:,}" for each in found)),
        ("of them labelled (precision)", *(_share(each.precision) for each in found)),
        ("labelled that are alarms (recall)", *(_share(each.recall) for each in found)),
        ("faults found", *(f"{len(each.delays):,} of {len(each.faults):,}" for each in found)),
        ("median delay, records", *(_number(each.median_delay, 1) for each in found)),
        ("CPU time per record, µs", *(_number(each.log.microseconds, 2) for each in found)),
    ]
    return "\n\n".join([aligned(rows), _faults(found)])


def aligned(rows: Rows, left: Sequence[int] = (0,)) -> str:
    """Return rows as lines, with columns aligned to the right, those in `left` to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def _settings(found: Comparison) -> Rows:
    if not found.differing_settings:
        return [("A and B have the same settings of the model.",)]
    values = ((name, str(a), str(b)) for name, (a, b) in found.differing_settings.items())
    return [("setting", "A", "B"), *values]


def _figures(found: Comparison) -> Rows:
    a, b = found.logs
    return [
        ("", "A", "B", "B - A"),
        ("log-likelihood, mean", *_pair(found.log_likelihood, found.standard_error)),
        ("log-likelihood, best 99 %", *_pair(found.log_likelihood_best)),
        ("CPU time per record, µs", *_pair((a.microseconds, b.microseconds))),
        ("rejected", *_counts(a.rejected.total(), b.rejected.total())),
        ("alarms", *_counts(*(int(scores.is_alarm.sum()) for scores in found.scores))),
    ]


def _stretches(found: Comparison) -> Rows:
    stretches = found.stretches()
    means = ("log-likelihood A", "B", "B - A")
    alarms = ("alarms in both", "only in A", "only in B")
    rows: Rows = [("stretch of the log", "records", *means, *alarms)]
    for i, stretch in enumerate(stretches):
        name = f"{100 * i // len(stretches)} to {100 * (i + 1) // len(stretches)} %"
        counts = (f"{stretch.alarms[group]:,}" for group in GROUPS)
        rows.append((name, f"{stretch.records:,}", *_pair(stretch.log_likelihood), *counts))
    return rows


def _alarms(found: Comparison, group: str) -> str:
    alarms = found.alarms(group)
    title = f"alarms {_GROUPS[group]}: {len(alarms):,}"
    if not alarms:
        return title
    if len(alarms) > _MOST_ALARMS:
        title += f", the {_MOST_ALARMS} most unusual"
    rows: Rows = [("partition/offset", "p-value A", "p-value B", "blamed")]
    for alarm in alarms[:_MOST_ALARMS]:
        p_values = (f"{p:.2g}" for p in alarm.p_value)
        rows.append((f"{alarm.partition}/{alarm.offset}", *p_values, _blamed(alarm)))
    return f"{title}\n{aligned(rows, left=(0, 3))}"


def _blamed(alarm: ComparedAlarm) -> str:
    """Name the fields that both blame, or those of each."""
    a, b = (", ".join(names) for names in alarm.blamed)
    if a and b and a != b:
        return f"{a} (A); {b} (B)"
    return a or b


def _faults(found: Sequence[Evaluation]) -> str:
    delays: dict[tuple[int, int, int], dict[int, str]] = {}
    for i, evaluation in enumerate(found):
        for fault in evaluation.faults:
            delay = "not found" if fault.delay is None else f"{fault.delay:,}"
            delays.setdefault((fault.partition, fault.offset, fault.records), {})[i] = delay
    rows: Rows = [("fault at partition/offset", "records", *_delay_heads(found))]
    longest = sorted(delays, key=lambda fault: -fault[2])[:_MOST_FAULTS]
    for partition, offset, records in sorted(longest):
        shown = (delays[partition, offset, records].get(i, "-") for i in range(len(found)))
        rows.append((f"{partition}/{offset}", f"{records:,}", *shown))
    if len(delays) > len(longest):
        rest = f"{len(delays) - len(longest):,} more faults, none of them longer: see --json"
        return f"{aligned(rows)}\n{rest}"
    return aligned(rows)


def _delay_heads(found: Sequence[Evaluation]) -> list[str]:
    return ["delay"] if len(found) == 1 else [f"delay {each.log.name}" for each in found]


def _pair(values: Pair, error: float = float("nan")) -> tuple[str, str, str]:
    """Return two numbers and their difference, with its standard error unless that is NaN."""
    a, b = values
    difference = "-" if isnan(b - a) else f"{b - a:+,.2f}"
    if not isnan(error):
        difference += f" ± {error:.2f}"
    return _number(a), _number(b), difference


def _counts(a: int, b: int) -> tuple[str, str, str]:
    return f"{a:,}", f"{b:,}", f"{b - a:+,}"


def _number(value: float, digits: int = 2) -> str:
    return "-" if isnan(value) else f"{value:,.{digits}f}"


def _share(value: float) -> str:
    return "-" if isnan(value) else f"{100 * value:.1f} %"
