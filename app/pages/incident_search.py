"""Finds the incident of an address, whichever worker holds its partition."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson
from aiokafka.errors import KafkaError
from faust.types import TP

from faust_oslrau.app.partitions.runtime import Runtime
from faust_oslrau.app.registry import RegistryError

from .answers import Answer, json_answer, text_answer

_MOST_DIGITS = 19  # of an offset


class Address(NamedTuple):
    """Where an incident opened, as an address has it."""

    topic: str
    partition: str
    offset: str


async def find_incident(runtime: Runtime, address: Address) -> Answer:
    """Return an incident and whether this worker holds its partition, or why there is none.

    Of an incident that the worker does not know, it is what the anomalies topic tells.
    """
    name, topic = "/".join(address), runtime.settings.anomalies_topic
    if address.topic not in runtime.topics or not _are_numbers(*address[1:]):
        return text_answer(f"There is no incident {name}: no such partition is scored.", 404)
    tp = TP(address.topic, int(address.partition))
    held = runtime.assignment.held.get(tp) if runtime.assignment else None
    known = held.metrics.history.incidents.get(name) if held else None
    if known is not None:
        return _found(orjson.Fragment(known.as_json()), is_held=True)
    try:
        event = await runtime.past_incidents.find(tp, name, int(address.offset))
    except (KafkaError, RegistryError, OSError):  # a TimeoutError is an OSError
        return text_answer(f"The topic {topic} cannot be read at present.", 503)
    if event is None:
        return text_answer(f"There is no incident {name} in the topic {topic}.", 404)
    return _found({"noted": None, "since": None, **event}, is_held=held is not None)


def _are_numbers(*texts: str) -> bool:
    return all(text.isdecimal() and len(text) <= _MOST_DIGITS for text in texts)


def _found(incident: Any, *, is_held: bool) -> Answer:
    return json_answer({"is_held": is_held, "incident": incident})
