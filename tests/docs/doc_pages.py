"""The project's pages, and what tests look for in them."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/*.md", "benchmarks/*.md")
    for page in ROOT.glob(pattern)
)
# What holds today; the changelog speaks of the past.
PRESENT = [page for page in PAGES if page != "CHANGELOG.md"]

_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")


class Code(NamedTuple):
    """A fenced block of code: its language, empty for none, and its text."""

    language: str
    text: str


def read(page: str) -> str:
    """Return the text of a page, named by its path in the project."""
    return (ROOT / page).read_text(encoding="utf-8")


def section(page: str, title: str) -> str:
    """Return what stands below a heading, up to the next heading of any level."""
    _, below = re.split(rf"^#+ {re.escape(title)}$", read(page), maxsplit=1, flags=re.MULTILINE)
    return re.split(r"^#+ ", below, maxsplit=1, flags=re.MULTILINE)[0]


def blocks(page: str) -> list[Code]:
    """Return the fenced blocks of code of a page."""
    return [Code(*found) for found in _FENCE.findall(read(page))]


def texts(page: str, language: str) -> list[str]:
    """Return the texts of a page's blocks in a language."""
    return [block.text for block in blocks(page) if block.language == language]


def without_blocks(text: str) -> str:
    """Return a text without its fenced blocks of code."""
    return _FENCE.sub("", text)


def rows(text: str, columns: int) -> list[list[str]]:
    """Return the rows of the tables with so many columns, without their heads, as cells."""
    found = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in row] for row in found if len(row) == columns]
    rulers = [i for i, row in enumerate(cells) if set("".join(row)) <= set("-: ")]
    heads = {i - 1 for i in rulers}
    return [row for i, row in enumerate(cells) if i not in heads and i not in rulers]


def code(text: str) -> list[str]:
    """Return what stands between single backticks."""
    return _CODE.findall(text)
