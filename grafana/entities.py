"""The rows of entities and of silences, which are empty without their settings."""

from __future__ import annotations

from .board import Row, row
from .panels import lines

_NO_ENTITIES = "no data without the setting entity"
_NO_SILENCES = "no data without silences in the setting events"


def entities() -> Row:
    """Return the row of what is usual for entities."""
    return row(
        250,
        "Entities",
        3,
        lines(
            207,
            "Entities",
            "Entities whose usual values are known. At the setting max_entities, the one not seen "
            "for longest gives way to a new one. Only with the setting entity.",
            "short",
            {
                "{{topic}}/{{partition}}": "max by (topic, partition) (oslrau_entities{selected})",
            },
            none=_NO_ENTITIES,
        ),
        lines(
            208,
            "Entities that gave way",
            "Entities that gave way to others in 15 minutes. Where many give way, a larger "
            "max_entities helps.",
            "short",
            {
                "{{topic}}/{{partition}} gave way": "sum by (topic, partition)"
                " (increase(oslrau_entities_evicted_total{selected}[15m]))",
            },
            none=_NO_ENTITIES,
        ),
        lines(
            211,
            "Unusual entities",
            "Events of entities in 15 minutes: entities that became unusual as a whole among all "
            "entities, those that are usual again, and new ones with new_entities in events.",
            "short",
            {
                "{{topic}}/{{partition}} {{state}}": "sum by (topic, partition, state)"
                " (increase(oslrau_entity_events_total{selected}[15m]))"
            },
            none=_NO_ENTITIES,
        ),
    )


def silences() -> Row:
    """Return the row of entities and partitions that send no records."""
    return row(
        260,
        "Silences",
        3,
        lines(
            209,
            "Silences",
            "Silences longer than usual that were found in 15 minutes, and the entities that are "
            "silent. Only with silences in the setting events. OslrauSilence fires at the first.",
            "short",
            {
                "{{topic}}/{{partition}}": "sum by (topic, partition)"
                " (increase(oslrau_silences_total{selected}[15m]))",
                "{{topic}}/{{partition}} silent": "max by (topic, partition)"
                " (oslrau_silent_entities{selected})",
            },
            alert="OslrauSilence",
            none=_NO_SILENCES,
        ),
        lines(
            214,
            "Changes of rates",
            "Times that entities or partitions began to send more or fewer records than usual, in "
            "15 minutes. Only with the setting rates. OslrauRate fires at the first.",
            "short",
            {
                "{{topic}}/{{partition}}": "sum by (topic, partition)"
                " (increase(oslrau_rate_changes_total{selected}[15m]))"
            },
            alert="OslrauRate",
            none="no data without the setting rates",
        ),
        lines(
            210,
            "Age of the last record",
            "Time since the timestamp of a partition's last record, as a multiple of the silence "
            "that is usual. Only with silences in the setting events.",
            "short",
            {
                "{{topic}}/{{partition}}": "(time() - max by (topic, partition)"
                " (oslrau_last_record_timestamp_seconds{selected})) / clamp_min(max by"
                " (topic, partition) (oslrau_silence_limit_seconds{selected}), 60)"
            },
            alert="OslrauPartitionSilent",
            none=_NO_SILENCES,
        ),
    )
