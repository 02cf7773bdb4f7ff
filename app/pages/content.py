"""What each page holds."""

from __future__ import annotations

from typing import Any

from aiohttp.web import Request
from faust import App

from faust_oslrau.app.metrics import accepted, metrics_page
from faust_oslrau.app.partitions.held_partition import HeldPartition
from faust_oslrau.app.partitions.runtime import Runtime
from faust_oslrau.app.pipeline import profile_data
from faust_oslrau.learner import OSLRAU

from . import health
from .answers import Answer, json_answer, refusal, text_answer
from .field_course import field_course
from .incident_search import Address, find_incident
from .limits import SharedPages
from .live_state import LiveState
from .static_files import incident_file, page_file

# The share of the time in which metrics, summaries or networks are made, each at the most. Small
# deployments need much less; networks are read in the compute thread, which then does not score.
_SHARE = 0.1
# Incidents are looked for in a topic: most of that is waiting for the broker.
_WAITING_SHARE = 0.5
# Whatever the number of readers, they see the state of at most a second ago.
_SECONDS = 1.0
# More than a reader looks through; a longer part of the name finds fewer.
_MOST_ENTITIES = 20

_BAD_SINCE = refusal(400, "since: expected whole seconds since 1970")
_NO_ENTITY = refusal(404, "no such entity in this partition")
_NO_PARTITION = refusal(404, "no such partition here, or nothing learned yet")


class PageContent:
    """Makes the content of the pages.

    Parameters
    ----------
    app
        The worker's app.
    runtime
        The worker.
    """

    def __init__(self, app: App, runtime: Runtime) -> None:
        self._app = app
        self._runtime = runtime
        self._live = LiveState(runtime)
        self._metrics = SharedPages(_SHARE, _SECONDS)
        self._summaries = SharedPages(_SHARE, _SECONDS)
        self._networks = SharedPages(_SHARE, _SECONDS)
        self._states = SharedPages(_SHARE, _SECONDS)
        self._courses = SharedPages(_SHARE, _SECONDS)
        self._entities = SharedPages(_SHARE, _SECONDS)
        self._searches = SharedPages(_SHARE, _SECONDS)
        self._incidents = SharedPages(_WAITING_SHARE, _SECONDS)

    async def healthz(self, _: Request) -> Answer:
        """Return whether the worker lives."""
        return _verdict(health.liveness(self._runtime))

    async def readyz(self, _: Request) -> Answer:
        """Return whether the worker is ready."""
        return _verdict(self._readiness(), self._runtime.compiled)

    async def metrics(self, request: Request) -> Answer:
        """Return the metrics in OpenMetrics if the request asks for it, else as Prometheus does."""
        written = accepted(request.headers.get("Accept", ""))

        async def make() -> Answer:
            text = await metrics_page(self._runtime.metrics.registry, written)
            return Answer(text, {"Content-Type": written.media_type, "Vary": "Accept"})

        return await self._metrics.get(written, make)

    async def model(self, request: Request) -> Answer:
        """Return a summary of all models, or one network if the request names a partition."""

        async def summary() -> Answer:
            return json_answer(health.models(self._runtime))

        async def network() -> Answer:
            return await _network(chosen, as_dot=as_dot)

        if not request.query:
            return await self._summaries.get("model", summary)
        chosen, as_dot = self._chosen(request), request.query.get("format") == "dot"
        return await self._networks.get((_names(chosen), as_dot), network)

    async def field(self, request: Request) -> Answer:
        """Return the course of a field of the first partition that the request names.

        If it names an entity, too, the course is that of its records.
        """
        since = _seconds(request)
        if since is None:
            return _BAD_SINCE
        chosen, name = self._chosen(request)[:1], request.query.get("field")
        entity = request.query.get("entity")
        if not chosen:
            return _NO_PARTITION

        async def make() -> Answer:
            course = await field_course(chosen[0], name, since, entity)
            return _NO_ENTITY if course is None else json_answer(course)

        return await self._courses.get((_names(chosen), name, since, entity), make)

    async def entity(self, request: Request) -> Answer:
        """Return what the first partition that the request names knows of an entity."""
        chosen, name = self._chosen(request)[:1], request.query.get("entity", "")
        if not chosen:
            return _NO_PARTITION

        async def make() -> Answer:
            found = await chosen[0].entity_profile(name)
            if found is None:
                return _NO_ENTITY
            return json_answer(profile_data(found, chosen[0].pipeline.fields or ()))

        return await self._entities.get((_names(chosen), name), make)

    async def entities(self, request: Request) -> Answer:
        """Return some entities whose name has a part, of the partitions that the request names."""
        chosen, part = self._chosen(request), request.query.get("name", "")

        async def make() -> Answer:
            return json_answer({"entities": await _entities(chosen, part)})

        return await self._searches.get((_names(chosen), part), make)

    async def incident(self, request: Request) -> Answer:
        """Return the incident that the request names, of any partition."""
        return await self._incident(Address(*(request.query.get(n, "") for n in Address._fields)))

    async def incident_page(self, request: Request) -> Answer:
        """Return the page at `/` as it begins with an incident, or a sentence if there is none."""
        found = await self._incident(Address(*(request.match_info[n] for n in Address._fields)))
        return incident_file() if found.status == 200 else found

    async def live(self, request: Request) -> Answer:
        """Return what partitions did since a moment, all of them if the request names none."""
        since = _seconds(request)
        if since is None:
            return _BAD_SINCE
        chosen = self._chosen(request)

        async def make() -> Answer:
            return json_answer(await self._live.since(since, chosen, self._readiness()))

        return await self._states.get((_names(chosen), since), make)

    async def file(self, request: Request) -> Answer:
        """Return a file of the page at `/`."""
        name = request.match_info.get("name", "index.html")
        return page_file(name) or refusal(404, "no such page")

    async def _incident(self, address: Address) -> Answer:
        async def make() -> Answer:
            return await find_incident(self._runtime, address)

        return await self._incidents.get(address, make)

    def _readiness(self) -> str | None:
        return health.readiness(self._runtime, self._app.rebalancing)

    def _chosen(self, request: Request) -> list[HeldPartition]:
        """Return the partitions that a request names, all of them if it names none."""
        held = self._runtime.assignment.held if self._runtime.assignment else {}
        query = request.query
        return [
            held[tp]
            for tp in sorted(held)
            if query.get("topic", tp.topic) == tp.topic
            and query.get("partition", str(tp.partition)) == str(tp.partition)
        ]


async def _entities(chosen: list[HeldPartition], part: str) -> list[dict[str, Any]]:
    """Return some entities whose name has a part, those with exactly this name first."""
    found = [
        partition.tp._asdict() | {"entity": name}
        for partition in chosen
        for name in await partition.search_entities(part, _MOST_ENTITIES)
    ]
    return sorted(found, key=lambda each: each["entity"] != part)[:_MOST_ENTITIES]


async def _network(chosen: list[HeldPartition], *, as_dot: bool) -> Answer:
    """Return the network of the first partition that has one."""
    for partition in chosen:
        place, names = partition.tp, partition.pipeline.learned_names
        depends_on = partition.pipeline.dependences

        def draw(
            learner: OSLRAU, place: Any = place, names: Any = names, given: Any = depends_on
        ) -> Any:
            if as_dot:
                return learner.to_dot(names, given)
            where = {"topic": place.topic, "partition": place.partition}
            return {**where, "learned": learner.n_records_, **learner.outline(names)}

        drawn = await partition.ask(draw)
        if drawn is not None:
            return text_answer(drawn) if isinstance(drawn, str) else json_answer(drawn)
    return _NO_PARTITION


def _seconds(request: Request) -> int | None:
    """Return from when on a request asks; None if that is no number."""
    try:
        return int(request.query.get("since", 0))
    except ValueError:
        return None


def _names(chosen: list[HeldPartition]) -> tuple[Any, ...]:
    return tuple(partition.tp for partition in chosen)


def _verdict(reason: str | None, compiled: float | None = None) -> Answer:
    if reason is None:
        return json_answer({"status": "ok"})
    share = {} if compiled is None else {"compiled": compiled}
    return json_answer({"status": "unavailable", "reason": reason, **share}, status=503)
