"""Serves the static files of the page at `/`, which are part of the package."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.resources import files

from .answers import Answer

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
# The page runs its own scripts and asks its own worker, nothing and nobody else.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # a new version's page talks to a new version's worker
}


def page_file(name: str) -> Answer | None:
    """Return a file of the page, None where there is none of that name."""
    return _page_files().get(name)


@cache
def incident_file() -> Answer:
    """Return the page as it is at the address of an incident, below `/`."""
    page = _page_files()["index.html"]
    based = page.content.replace(b"<head>", b'<head>\n  <base href="../../../">', 1)
    return replace(page, content=based)


@cache
def _page_files() -> dict[str, Answer]:
    folder = files(__package__) / "static"
    return {file.name: Answer(file.read_bytes(), _headers(file.name)) for file in folder.iterdir()}


def _headers(name: str) -> dict[str, str]:
    kind = _TYPES[name.rsplit(".", 1)[-1]]
    return {**_HEADERS, "Content-Type": f"{kind}; charset=utf-8"}
