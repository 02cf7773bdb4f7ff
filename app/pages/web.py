"""The worker's pages on Faust's web server, all of them read-only.

`/` is for people and reads `/live` and `/model`; the others are for machines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from faust import App
from prometheus_client import CONTENT_TYPE_LATEST

from faust_oslrau.app.metrics import metrics_page
from faust_oslrau.app.partitions.held_partition import HeldPartition
from faust_oslrau.app.partitions.runtime import Runtime
from faust_oslrau.learner import NetworkLearner

from . import health
from .live_state import live_state
from .static_files import page_file


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
    for handler in (metrics, healthz, readyz, model, live):
        app.page(f"/{handler.__name__}")(handler)
    app.page("/", name="index")(page)
    app.page("/page/{name}")(page)


async def _structure(view: Any, chosen: list[HeldPartition], query: Mapping[str, str]) -> Any:
    """Answer with the network of the first partition that has one."""
    for partition in chosen:
        place, fields = partition.tp, partition.pipeline.fields

        def draw(learner: NetworkLearner, place: Any = place, fields: Any = fields) -> Any:
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
