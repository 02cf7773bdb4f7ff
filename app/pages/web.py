"""The worker's pages on Faust's web server, all of them read-only.

`/` and `/incidents` are for people and read `/live`, `/field`, `/entities`, `/entity`, `/incident`
and `/model`; the others are for machines. Machines ask under any name, such as a pod's address.
What holds fields, keys or records is for allowed hosts only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp.web import Request, StreamResponse, middleware
from faust import App

from faust_oslrau.app.partitions.runtime import Runtime
from faust_oslrau.app.settings import Settings
from faust_oslrau.app.settings.section import short

from .answers import Answer, refusal, send
from .content import PageContent
from .hosts import is_allowed
from .limits import RequestLimit

_BUSY = refusal(503, "too many requests at once", **{"Retry-After": "1"})


def add_pages(app: App, runtime: Runtime) -> None:
    """Add the pages to an app; a page that it already has at `/` stays there."""
    content, settings = PageContent(app, runtime), runtime.settings
    # Limits of their own: people who look must not keep probes and Prometheus waiting. A request
    # takes about half a millisecond of the event loop.
    health = RequestLimit(per_second=100, at_once=1000)
    _add(app, "/healthz", "healthz", content.healthz, health)
    _add(app, "/readyz", "readyz", content.readyz, health)
    _add(app, "/metrics", "metrics", content.metrics, RequestLimit(per_second=10, at_once=32))
    people = RequestLimit(per_second=50, at_once=64)
    _add(app, "/model", "model", content.model, people, settings)
    _add(app, "/live", "live", content.live, people, settings)
    _add(app, "/field", "field", content.field, people, settings)
    _add(app, "/entity", "entity", content.entity, people, settings)
    _add(app, "/entities", "entities", content.entities, people, settings)
    _add(app, "/incident", "incident", content.incident, people, settings)
    address = "/incidents/{topic}/{partition}/{offset}"
    _add(app, address, "incidents", content.incident_page, people, settings)
    _add(app, "/", "index", content.file, people, settings)
    _add(app, "/page/{name}", "page", content.file, people, settings)
    refuse = _refuse_slowly(RequestLimit(per_second=10, at_once=32))
    app.web.web_app.middlewares.append(refuse)  # type: ignore[attr-defined]  # of Faust's base


def _add(
    app: App,
    path: str,
    name: str,
    answer: Callable[[Request], Awaitable[Answer]],
    limit: RequestLimit,
    hosts: Settings | None = None,
) -> None:
    """Add a page; with `hosts` it answers under the names that these settings allow only."""

    async def get(view: Any, request: Any, **parts: str) -> Any:
        async with limit.turn() as has_turn:
            if not has_turn:
                found = _BUSY
            elif hosts is None or is_allowed(request.headers.get("Host", ""), hosts):
                found = await answer(request)
            else:
                found = _foreign_host(request)
            return await send(request, found)

    get.__name__ = name  # Faust takes plain functions only, and names the page after them
    app.page(path, name=name)(get)


def _refuse_slowly(limit: RequestLimit) -> Any:
    """Return a middleware that bounds requests which no page answers, as status 404 or 405."""

    @middleware
    async def refuse(request: Request, handler: Callable[[Request], Any]) -> StreamResponse:
        if request.match_info.http_exception is None:
            found: StreamResponse = await handler(request)
            return found
        async with limit.turn() as has_turn:
            return await (handler(request) if has_turn else send(request, _BUSY))

    return refuse


def _foreign_host(request: Request) -> Answer:
    host = short(request.headers.get("Host", ""))
    return refusal(421, f"Host {host} is not allowed: add it to the setting web_allowed_hosts")
