"""The summary of a demo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from .accounting import Account, Blamed, Place
from .faults import FAULTS, MALFORMATIONS
from .incidents import DemoIncident

_EXAMPLES = 5
_LATEST = 8


@dataclass(frozen=True, slots=True)
class Caught:
    """The number of injected anomalies of one kind that were caught and missed."""

    caught: int
    missed: int


class Injected(NamedTuple):
    """An injected anomaly: its kind and record, whether that was an alarm, and what was found."""

    kind: str
    place: Place
    is_alarm: bool
    blamed: Blamed | None
    incident: DemoIncident | None

    @property
    def records_until_open(self) -> int | None:
        """Records of its partition until its incident opened; negative if it was open before."""
        return None if self.incident is None else self.incident.opened - self.place.offset

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "kind": self.kind,
            **self.place._asdict(),
            "alarm": self.is_alarm,
            "blamed": None if self.blamed is None else self.blamed._asdict(),
            "incident": None if self.incident is None else self.incident.name,
            "records_until_open": self.records_until_open,
        }


@dataclass(frozen=True, slots=True)
class Summary:
    """The final account of a demo.

    Attributes
    ----------
    seconds, rate
        Time from the first record to the last answer, and answers per second.
    malformed
        The number of malformed messages, by their expected reason of rejection.
    rejected, first_rejection
        The number of dead letters by reason, and what the first one says; None if there is none.
    injected
        The injected anomalies that were caught and missed, by kind.
    other_alarms, expected_alarms
        Anomalous records without an injected anomaly, and as many as the alarm rate lets expect of
        so many usual records. All anomalous records of a file.
    latest_injected
        The last injected anomalies, with what their messages said of them.
    incidents, incidents_with_faults
        The number of incidents, and of those with an injected anomaly among their records.
    alarm_rate
        The worker's setting: an alarm is a record among this share of the most unusual ones.
    fields, left_out
        The fields of a partition, and those that its first records left out, each with the reason.
    nodes
        Nodes of all partitions' networks at the end.
    missing, duplicates, strangers, unmatched
        The number of records without an answer, with several answers, with an answer although never
        sent, and anomalous ones without exactly one anomaly message.
    examples
        "partition/offset" of some of these records.
    worker_failure
        The last lines of a worker that ended unexpectedly; else None.
    """

    broker: str
    topics: list[str]
    seconds: float
    records: int
    scored: int
    rejected: dict[str, int]
    first_rejection: str | None
    malformed: dict[str, int]
    injected: dict[str, Caught]
    alarms: int
    other_alarms: int
    expected_alarms: float
    latest_injected: list[Injected]
    incidents: int
    incidents_with_faults: int
    alarm_rate: float
    fields: Sequence[str]
    left_out: Sequence[str]
    nodes: int
    rate: float
    missing: int
    duplicates: int
    strangers: int
    unmatched: int
    examples: list[str]
    worker_failure: str | None

    @property
    def is_accounted(self) -> bool:
        """Whether each record was scored or dead-lettered, once."""
        return not (self.missing or self.duplicates or self.strangers or self.unmatched)

    @property
    def is_good(self) -> bool:
        """Whether that is so, and any record was scored if any was sent."""
        return self.is_accounted and (self.scored > 0 or self.records == 0)

    @property
    def usual(self) -> int:
        """The number of scored records without an injected anomaly."""
        return max(
            0, self.scored - sum(each.caught + each.missed for each in self.injected.values())
        )

    def to_json(self) -> dict[str, Any]:
        """Return the summary as plain data."""
        latest = [each.to_json() for each in self.latest_injected]
        return {**asdict(self), "latest_injected": latest, "accounted": self.is_accounted}


def summarize(
    account: Account,
    *,
    broker: str,
    topics: Sequence[str],
    seconds: float,
    fields: Sequence[str],
    left_out: Sequence[str],
    nodes: int,
    alarm_rate: float,
    worker_failure: str | None,
) -> Summary:
    """Return the summary of an account."""
    missing, duplicates = account.missing(), account.duplicates()
    strangers, unmatched = account.strangers(), account.unmatched()
    injected = {place: kind for place, kind in account.labels.items() if kind in FAULTS}
    wrong = [*missing, *duplicates, *strangers, *unmatched]
    return Summary(
        broker=broker,
        topics=list(topics),
        seconds=round(seconds, 3),
        records=account.sent,
        scored=account.scored,
        rejected=dict(sorted(account.reasons.items())),
        first_rejection=account.first_rejection,
        malformed=_malformed(account.labels),
        injected=_caught(injected, account.alarms),
        alarms=len(account.alarms),
        other_alarms=len(account.alarms - injected.keys()),
        expected_alarms=alarm_rate * max(0, account.scored - len(injected)),
        latest_injected=[
            Injected(
                kind,
                place,
                place in account.alarms,
                account.explanations.get(place),
                account.incident_of(place),
            )
            for place, kind in list(injected.items())[-_LATEST:]
        ],
        incidents=len(account.incidents),
        incidents_with_faults=sum(map(bool, map(account.injected_in, account.incidents.values()))),
        alarm_rate=alarm_rate,
        fields=fields,
        left_out=left_out,
        nodes=nodes,
        rate=round((account.scored + account.rejected) / seconds, 1) if seconds else 0.0,
        missing=len(missing),
        duplicates=len(duplicates),
        strangers=len(strangers),
        unmatched=len(unmatched),
        examples=[str(place) for place in wrong[:_EXAMPLES]],
        worker_failure=worker_failure,
    )


def _malformed(labels: Mapping[Place, str]) -> dict[str, int]:
    reasons = [MALFORMATIONS[kind][1] for kind in labels.values() if kind in MALFORMATIONS]
    return {reason.value: count for reason, count in sorted(Counter(reasons).items())}


def _caught(injected: Mapping[Place, str], alarms: set[Place]) -> dict[str, Caught]:
    all_of_kind = Counter(injected.values())
    caught = Counter(kind for place, kind in injected.items() if place in alarms)
    return {
        kind: Caught(caught[kind], all_of_kind[kind] - caught[kind])
        for kind in FAULTS
        if all_of_kind[kind]
    }
