"""Writes advice as a settings file that says why, in comments."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from textwrap import wrap
from typing import Any

import orjson

from .advice import Advice, Choice

_WIDTH = 100
_NOTES: Mapping[str, str] = {
    "transforms": "Records with a value that has no logarithm become dead letters.",
    "seasons": "UTC stands for the time zone in which people live who make the season.",
}


def advised_file(advice: Advice, records: int, source: str) -> str:
    """Return the advised settings as TOML, each below a comment with its reason."""
    head = [
        f"Advised by faust-oslrau {version('faust-oslrau')} for {records:,} records of {source}. "
        "A gain is in nats of log-likelihood a record, ± its standard error; each record is scored "
        "before it is learned."
    ]
    taken = [choice for choice in advice.choices if choice.is_advised]
    left = [choice for choice in advice.choices if not choice.is_advised]
    if advice.alarms is not None:
        before, after, both = advice.alarms
        head.append(
            f"{before:,} alarms without these settings, {after:,} with them, {both:,} in both."
        )
    blocks = [_comment(head), *map(_setting, taken)]
    if not taken:
        blocks.append(_comment(["The defaults are right."]))
    if left:
        told = [f"{_line(choice)}: {choice.why}" for choice in left]
        blocks.append(_comment(["Looked at, and left out:", *told]))
    return "\n\n".join(blocks) + "\n"


def _setting(choice: Choice) -> str:
    reasons = [choice.why]
    if choice.name in _NOTES:
        reasons.append(_NOTES[choice.name])
    return f"{_comment(reasons)}\n{_line(choice)}"


def _line(choice: Choice) -> str:
    return choice.name if choice.value is None else f"{choice.name} = {_toml(choice.value)}"


def _comment(paragraphs: list[str]) -> str:
    wrapped = (wrap(_printable(text), _WIDTH - 2, break_on_hyphens=False) for text in paragraphs)
    return "\n".join(f"# {line}" for lines in wrapped for line in lines)


def _printable(text: str) -> str:
    """Return a text without what would end a comment: a name may hold any character."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _toml(value: Any) -> str:
    """Return a value as TOML; pairs are a table."""
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return f"{{ {', '.join(f'{_text(name)} = {_text(of)}' for name, of in value)} }}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_text, value))}]"
    return _text(value) if isinstance(value, str) else repr(value)


def _text(text: str) -> str:
    # A basic string of TOML escapes as JSON does, but for one character that JSON leaves alone.
    return orjson.dumps(text).decode().replace("\x7f", "\\u007f")
