"""Events of the anomalies topic, as notices are made of them."""

import json

from faust_oslrau.app.notify.notices import event_of
from faust_oslrau.topics import Record

BLAME = {"field": "flow", "nats": 9.0, "usual": 1.0, "value": 1.0, "expected": 13.2,
         "deviation": 0.28, "extrapolated": False}  # fmt: skip


def incident_event(name, state, severity="minor", *, fields=("flow",), partition=0, **members):
    """Return the event of an incident, which blames these fields, as it is written."""
    event = {
        "event": "incident", "topic": "pumps", "partition": partition, "offset": 9, "timestamp": 3,
        "state": state, "incident": f"pumps/{partition}/{name}",
        "severity": {"minor": 10, "major": 60, "critical": 90}[severity],
        "severity_name": severity, "evidence": 1.0, "length": 4, "latest_timestamp": 3,
        "contributions": [BLAME | {"field": field} for field in fields], **members,
    }  # fmt: skip
    return json.dumps(event).encode()


def read_event(value):
    """Return what a message tells, which is of an event."""
    found = event_of(Record("anomalies", 0, 0, None, None, value))
    assert found is not None
    return found
