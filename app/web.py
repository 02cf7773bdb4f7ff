"""The worker's pages, on Faust's web server: /metrics, /healthz, /readyz and /model."""

from __future__ import annotations

from typing import Any

from faust import App
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from . import health
from .runtime import Runtime


def add_pages(app: App, runtime: Runtime) -> None:
    """Add the pages to an app; none of them changes anything."""

    async def metrics(view: Any, request: Any) -> Any:
        text = generate_latest(runtime.metrics.registry)
        return view.web.bytes(text, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def healthz(view: Any, request: Any) -> Any:
        return _verdict(view, health.liveness(runtime))

    async def readyz(view: Any, request: Any) -> Any:
        return _verdict(view, health.readiness(runtime, app.rebalancing))

    async def model(view: Any, request: Any) -> Any:
        return view.web.json(health.models(runtime))

    # Faust takes plain functions only: of other callables it would make a page without a name.
    for page in (metrics, healthz, readyz, model):
        app.page(f"/{page.__name__}")(page)


def _verdict(view: Any, reason: str | None) -> Any:
    if reason is None:
        return view.web.json({"status": "ok"})
    return view.web.json({"status": "unavailable", "reason": reason}, status=503)
