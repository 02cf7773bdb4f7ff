"""Writes what a message tells as one line for people."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

import click

from .told import Aspect, Contribution, Message, Told

# The widths of the columns, which longer content exceeds.
_WHAT, _TIME, _PLACE, _ENTITY = 17, 25, 20, 10
# Names and keys come from outside, and may be as long as a message.
_MOST_NAME, MOST_DETAIL = 60, 600
SEVERITY_COLOURS = {"minor": "green", "major": "yellow", "critical": "bright_red"}
_KINDS = {
    "anomaly": "yellow",
    "drift": "cyan",
    "entity": "cyan",
    "field": "cyan",
    "rate": "cyan",
    "silence": "cyan",
    "rejected": "magenta",
    "left out": "magenta",
    "not understood": "magenta",
}
# Of a probability that is written: smaller ones are guesses.
_LEAST_SHARE = 1e-6
_Item = TypeVar("_Item")


def line(told: Told, address: str | None = None) -> str:
    """Return what a message tells in one line, with colours, and where people find more.

    Nothing in it controls a terminal but the colours.
    """
    detail = told.detail if told.message is None else described(told.message)
    cells = (
        click.style(moment(told.timestamp).ljust(_TIME), dim=True),
        click.style(printable(told.what).ljust(_WHAT), fg=_colour(told)),
        printable(told.place, 2 * MOST_DETAIL).ljust(_PLACE),
        printable("-" if told.entity is None else told.entity).ljust(_ENTITY),
        printable(detail, MOST_DETAIL),
        printable(address or "", 2 * MOST_DETAIL),
    )
    return "  ".join(cells).rstrip()


def printable(text: str, most: int = _MOST_NAME) -> str:
    """Return a text with escapes for what a terminal would obey, shortened."""
    if len(text) > most:
        text = text[: most - 3] + "..."
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def rejection_told(detail: str | None) -> str:
    """Return what is wrong with the first rejected record as the end of a sentence."""
    return "" if detail is None else f"; the first rejected: {printable(detail, MOST_DETAIL)}"


def moment(timestamp: int | None) -> str:
    """Return a time in milliseconds since 1970 as local time with its distance from UTC."""
    if timestamp is None or timestamp < 0:
        return "-"
    try:
        return datetime.fromtimestamp(timestamp / 1000, UTC).astimezone().isoformat(" ", "seconds")
    except (ValueError, OverflowError, OSError):  # beyond the calendar
        return str(timestamp)


def odds(p_value: float | None) -> str:
    """Return a p-value as how rarely one expects this: "once in 4,000"."""
    if p_value is None:
        return "no p-value yet"
    if p_value > 0.5:
        return "usual"
    n = 1 / p_value if p_value > 1e-300 else 1e300
    if n >= 1e9:
        return f"once in 10^{math.log10(n):.0f}"
    rounded = float(f"{n:.2g}")
    return f"once in {rounded / 1e6:g} million" if rounded >= 1e6 else f"once in {rounded:,g}"


def category(item: Contribution) -> str:
    """Return a category and the suggested one: "503 (0.02 %), others suggest 200 (97 %)"."""
    usual = "another" if item.expected_category is None else printable(item.expected_category)
    found = printable(item.category or "?") + _chance(item.nats)
    return f"{found}, others suggest {usual}{_chance(item.usual)}"


def _chance(nats: float | None) -> str:
    """Return the probability of a category by its nats."""
    if nats is None:
        return ""
    share = math.exp(-max(nats, 0.0))
    if share < _LEAST_SHARE:
        return f" (under {100 * _LEAST_SHARE:.4f} %)"
    rounded = float(f"{100 * share:.{1 if share < 0.1 else 2}g}")
    return f" ({rounded:g} %)"


def _colour(told: Told) -> str | None:
    if told.message is not None and told.message.event == "incident":
        return SEVERITY_COLOURS.get(told.message.severity_name or "")
    kind = told.what if told.message is None else told.message.event or told.what
    return _KINDS.get(kind)


def described(message: Message) -> str:
    """Return what a message says of how unusual something is."""
    if message.event is None:
        return _joined([_blamed(message.contributions), odds(message.p_value), _density(message)])
    describe = _EVENTS.get(message.event)
    return "" if describe is None else describe(message)


def _density(message: Message) -> str:
    if message.is_anomaly or message.log_likelihood is None:
        return ""
    return f"log-likelihood {message.log_likelihood:.4g}"


def _incident(message: Message) -> str:
    severity = f"{message.severity_name or 'severity'} {_number(message.severity)}"
    since = "" if message.start_timestamp is None else f"since {moment(message.start_timestamp)}"
    length = "" if message.length is None else f"{message.length:,} records of the partition"
    blamed, peak = _blamed(message.contributions), odds(message.peak_p_value)
    return _joined([blamed, peak, severity, since, length])


def _entity(message: Message) -> str:
    p_value = message.entity_p_value
    rarity = "" if p_value is None else f"{odds(p_value)} entities"
    return _joined([_listed(message.aspects, _aspect), rarity])


def _silence(message: Message) -> str:
    lasted, limit = (_number(s) for s in (message.seconds, message.limit_seconds))
    return f"no record for {lasted} s, unusual after {limit} s"


def _rate(message: Message) -> str:
    window, since = _number(message.window_seconds), message.since
    usual = f"{message.low or 0:,} to {message.high or 0:,} usual"
    group = "" if message.field is None else f"{message.field} = {message.category}: "
    came = f"{printable(group)}{message.records or 0:,} records in the last {window} s, {usual}"
    return _joined([came, "" if since is None else f"since {moment(since)}"])


def _field(message: Message) -> str:
    name = printable(message.field or "?")
    if message.factor is not None:
        return f"{name}: level and spread times {_number(message.factor)}, perhaps another unit"
    if message.now is not None:
        return f"{name}: {printable(message.now)} in place of {printable(message.before or '?')}"
    return name


def _drift(message: Message) -> str:
    return f"records are less likely than before, since about {message.records or 0:,} records"


_EVENTS: dict[str, Callable[[Message], str]] = {
    "drift": _drift,
    "entity": _entity,
    "field": _field,
    "incident": _incident,
    "rate": _rate,
    "silence": _silence,
}


def _blamed(contributions: Sequence[Contribution] | None) -> str:
    return _listed(contributions or (), _contribution)


def _listed(items: Sequence[_Item], describe: Callable[[_Item], str]) -> str:
    """Describe the first item, and count the others."""
    if not items:
        return ""
    more = f" and {len(items) - 1} more" if len(items) > 1 else ""
    return describe(items[0]) + more


def _contribution(item: Contribution) -> str:
    if item.category is not None:
        return f"{printable(item.field)} {category(item)}"
    expected = f"{_number(item.expected)} \u00b1 {_number(item.deviation, 2)}"
    return f"{printable(item.field)} {_number(item.value)} (expected {expected})"


def _aspect(aspect: Aspect) -> str:
    apart = f"{_number(aspect.deviations, 2)} deviations"
    if aspect.field is None:
        return f"{aspect.aspect} of records ({apart} from others)"
    usual = f"usual {_number(aspect.usual)}, {apart}"
    return f"{aspect.aspect} of {printable(aspect.field)} {_number(aspect.value)} ({usual})"


def _number(value: float | None, digits: int = 4) -> str:
    return "?" if value is None else f"{value:.{digits}g}"


def _joined(parts: Sequence[str]) -> str:
    return ", ".join(filter(None, parts))
