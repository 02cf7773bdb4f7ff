"""The worker's pages on Faust's web server, all of them read-only.

`/` is for people and reads `/live` and `/model`; the others are for machines. Machines ask under
any name, such as a pod's address. What holds fields, keys or records is for allowed hosts only.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
from faust import App
from prometheus_client import CONTENT_TYPE_LATEST

from faust_oslrau.app.metrics import metrics_page
from faust_oslrau.app.partitions.held_partition import HeldPartition
from faust_oslrau.app.partitions.runtime import Runtime
from faust_oslrau.app.settings import Settings
from faust_oslrau.app.settings.section import short
from faust_oslrau.learner import OSLRAU

from . import health
from .hosts import is_allowed
from .live_state import live_state
from .static_files import page_file

_Handler = Callable[..., Awaitable[Any]]


def add_pages(app: App, runtime: Runtime) -> None:
    """Add the pages to an app; a page that it already has at `/` stays there."""

    async def metrics(view: Any, request: Any) -> Any:
        text = await metrics_page(runtime.metrics.registry)
        return view.web.bytes(text, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def healthz(view: Any, request: Any) -> Any:
        return _verdict(view, health.liveness(runtime))

    async def readyz(view: Any, request: Any) -> Any:
        return _verdict(view, health.readiness(runtime, app.rebalancing))

    async def model(view: Any, request: Any) -> Any:
        if not request.query:
            return view.web.json(health.models(runtime))
        return await _structure(view, _chosen(runtime, request.query), request.query)

    async def live(view: Any, request: Any) -> Any:
        try:
            since = int(request.query.get("since", 0))
        except ValueError:
            return _refuse(view, 400, "since: expected whole seconds since 1970")
        waiting_for = health.readiness(runtime, app.rebalancing)
        return _json(view, live_state(runtime, waiting_for, _chosen(runtime, request.query), since))

    async def page(view: Any, request: Any, name: str = "index.html") -> Any:
        file = page_file(name)
        if file is None:
            return _refuse(view, 404, "no such page")
        return view.web.bytes(file.content, headers=file.headers)

    # Faust takes plain functions only: of other callables it would make a page without a name.
    for handler in (metrics, healthz, readyz):
        app.page(f"/{handler.__name__}")(handler)
    for handler in (model, live):
        app.page(f"/{handler.__name__}")(_for_allowed_hosts(handler, runtime.settings))
    app.page("/", name="index")(_for_allowed_hosts(page, runtime.settings))
    app.page("/page/{name}")(_for_allowed_hosts(page, runtime.settings))


def _for_allowed_hosts(handler: _Handler, settings: Settings) -> _Handler:
    """Return a handler that refuses requests under other names."""

    @functools.wraps(handler)
    async def checked(view: Any, request: Any, **parts: str) -> Any:
        header = request.headers.get("Host", "")
        if is_allowed(header, settings):
            return await handler(view, request, **parts)
        reason = f"Host {short(header)} is not allowed: add it to the setting web_allowed_hosts"
        return _refuse(view, 421, reason)

    return checked


async def _structure(view: Any, chosen: list[HeldPartition], query: Mapping[str, str]) -> Any:
    """Answer with the network of the first partition that has one."""
    for partition in chosen:
        place, fields = partition.tp, partition.pipeline.fields

        def draw(learner: OSLRAU, place: Any = place, fields: Any = fields) -> Any:
            if query.get("format") == "dot":
                return learner.to_dot(fields)
            where = {"topic": place.topic, "partition": place.partition}
            return {**where, "learned": learner.n_records_, **learner.outline(fields)}

        drawn = await partition.ask(draw)
        if drawn is not None:
            return view.web.text(drawn) if isinstance(drawn, str) else _json(view, drawn)
    return _refuse(view, 404, "no such partition here, or nothing learned yet")


def _chosen(runtime: Runtime, query: Mapping[str, str]) -> list[HeldPartition]:
    """Return the partitions that a request asks for, all of them where it names none."""
    held = runtime.assignment.held if runtime.assignment else {}
    return [
        held[tp]
        for tp in sorted(held)
        if query.get("topic", tp.topic) == tp.topic
        and query.get("partition", str(tp.partition)) == str(tp.partition)
    ]


def _verdict(view: Any, reason: str | None) -> Any:
    if reason is None:
        return view.web.json({"status": "ok"})
    return view.web.json({"status": "unavailable", "reason": reason}, status=503)


def _json(view: Any, data: Any) -> Any:
    # Numbers that are not known are NaN, null in JSON.
    return view.web.bytes(orjson.dumps(data), headers={"Content-Type": "application/json"})


def _refuse(view: Any, status: int, reason: str) -> Any:
    return view.web.json({"status": "refused", "reason": reason}, status=status)
