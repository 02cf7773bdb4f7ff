"""Defines the settings: their names, types and defaults, and how they depend on each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

from faust_oslrau.app.errors import SettingsError

from .incident_settings import IncidentSettings
from .learner_settings import LearnerSettings
from .notify_settings import NotifySettings
from .registry_settings import RegistrySettings
from .section import Section, setting, short
from .value_types import (
    ADDRESS,
    BOOLEAN,
    DIRECTIONS,
    DISTANCES,
    ENTITY,
    EVENTS,
    FEATURES,
    FIELD,
    HOSTS,
    KINDS,
    SERVERS,
    SNAPSHOTS,
    SPANS,
    START,
    TEXT,
    TOPIC,
    TOPICS,
    TRANSFORMS,
    WINDOW,
    ZONE,
    choice,
    integer,
    number,
    optional,
    window_seconds,
)

# What an output message may add to its record: a dead letter's headers, or an anomaly's score.
_MESSAGE_ROOM = 64 * 1024
# What the learner takes; the pipeline must not be imported for it, which takes a second.
_MOST_CATEGORIES = 128


@dataclass(frozen=True, slots=True)
class SecuritySettings(Section):
    """TLS and SASL settings of the connection to the broker."""

    prefix: ClassVar[str] = "security."

    protocol: str = setting("PLAINTEXT", choice("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"))
    ca_file: str | None = setting(None, optional(TEXT))
    cert_file: str | None = setting(None, optional(TEXT))
    key_file: str | None = setting(None, optional(TEXT))
    sasl_mechanism: str = setting(
        "PLAIN", choice("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
    )
    sasl_username: str | None = setting(None, optional(TEXT))
    sasl_password: str | None = setting(None, optional(TEXT), secret=True)
    sasl_token_file: str | None = setting(None, optional(TEXT))

    @property
    def uses_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        """Whether the client authenticates with a password or a token."""
        return self.protocol.startswith("SASL_")

    @property
    def uses_token(self) -> bool:
        """Whether it is a token."""
        return self.uses_sasl and self.sasl_mechanism == "OAUTHBEARER"

    def __post_init__(self) -> None:
        """Check the fields, then their combination."""
        Section.__post_init__(self)  # super() fails, as dataclass slots create a new class
        self._require_together("sasl_username", self.uses_sasl and not self.uses_token)
        self._require_together("sasl_password", self.uses_sasl and not self.uses_token)
        self._require_together("sasl_token_file", self.uses_token)
        for name in ("ca_file", "cert_file", "key_file"):
            if getattr(self, name) is not None and not self.uses_tls:
                raise SettingsError(
                    f"setting security.{name}: expected no value with protocol {self.protocol}"
                )
        if self.key_file is not None and self.cert_file is None:
            raise SettingsError("setting security.cert_file: expected the certificate of key_file")

    def _require_together(self, name: str, needed: bool) -> None:
        if (getattr(self, name) is not None) != needed:
            expected = "a value" if needed else "no value"
            mechanism = f" and {self.sasl_mechanism}" if self.uses_sasl else ""
            raise SettingsError(
                f"setting security.{name}: expected {expected} with protocol "
                f"{self.protocol}{mechanism}"
            )


@dataclass(frozen=True, slots=True)
class Settings(Section):
    """All settings of a worker."""

    broker: str = setting("127.0.0.1:9092", SERVERS)
    app_id: str = setting("faust-oslrau", TOPIC)
    source_topics: tuple[str, ...] = setting(("features",), TOPICS)
    format: str = setting("json", choice("json", "avro", "protobuf", "json_schema"))
    features: str | tuple[str, ...] = setting("auto", FEATURES)
    kinds: tuple[tuple[str, str], ...] = setting((), KINDS)
    wrong_type: str = setting("reject", choice("reject", "missing"))
    transforms: tuple[tuple[str, str], ...] = setting((), TRANSFORMS)
    directions: tuple[tuple[str, str], ...] = setting((), DIRECTIONS)
    least: tuple[tuple[str, float], ...] = setting((), DISTANCES)
    time: str | None = setting(None, optional(FIELD))
    entity: str | None = setting(None, optional(ENTITY))
    max_entities: int = setting(100_000, integer(1))
    history: tuple[str, ...] | None = setting(None, optional(SPANS))
    seasons: str | None = setting(None, optional(ZONE))
    rates: str | None = setting(None, optional(WINDOW))
    rates_by: str | None = setting(None, optional(FIELD))
    adapt_after: int = setting(512, integer(1, 8192))
    forecasts: bool = setting(False, BOOLEAN)
    scores_format: str = setting("json", choice("json", "avro"))
    scores_topic: str = setting("scores", TOPIC)
    anomalies_topic: str = setting("anomalies", TOPIC)
    dead_letter_topic: str = setting("features-dead-letters", TOPIC)
    delivery: str = setting("at_least_once", choice("at_least_once", "exactly_once"))
    snapshots: str = setting("topic:oslrau-snapshots", SNAPSHOTS)
    snapshot_interval: float = setting(60.0, number(0, 86400))
    start: str = setting("earliest", START)
    initial_model: str | None = setting(None, optional(TEXT))
    lost_history: str = setting("refuse", choice("refuse", "continue"))
    learning: bool = setting(True, BOOLEAN)
    batch_size: int = setting(256, integer(16, 65536))
    alarm_rate: float = setting(0.001, number(0, 1))
    events: tuple[str, ...] | None = setting(
        ("records", "incidents", "unusual_entities"), optional(EVENTS)
    )
    compression: str = setting("snappy", choice("none", "gzip", "snappy", "lz4", "zstd"))
    max_message_bytes: int = setting(1_048_588, integer(1024))
    web_host: str = setting("127.0.0.1", TEXT)
    web_port: int = setting(6066, integer(1, 65535))
    web_allowed_hosts: tuple[str, ...] = setting((), HOSTS)
    page_url: str | None = setting(None, optional(ADDRESS))
    session_timeout: float = setting(10.0, number(0, 1800))
    group_instance_id: str | None = setting(None, optional(TOPIC))
    client_rack: str | None = setting(None, optional(TEXT))
    log_level: str = setting("INFO", choice("DEBUG", "INFO", "WARNING", "ERROR"))
    incidents: IncidentSettings = field(default_factory=IncidentSettings)
    notify: NotifySettings = field(default_factory=NotifySettings)
    registry: RegistrySettings = field(default_factory=RegistrySettings)
    learner: LearnerSettings = field(default_factory=LearnerSettings)
    security: SecuritySettings = field(default_factory=SecuritySettings)

    def __post_init__(self) -> None:
        """Check the fields, then their combination: no topic may have two roles."""
        Section.__post_init__(self)
        self._require_chosen("kinds", [name for name, _ in self.kinds])
        for name in ("transforms", "directions", "least"):
            self._require_chosen(name, [field for field, _ in getattr(self, name)])
        self._check_kinds()
        for name in ("entity", "time"):
            if getattr(self, name) in (self.chosen_fields or ()):
                raise SettingsError(
                    f"setting {name}: expected none of the setting features, got "
                    f"{getattr(self, name)}"
                )
        if self.rates_by is not None and self.rates is None:
            raise SettingsError(
                f"setting rates_by: expected none without the setting rates, got {self.rates_by}"
            )
        self._check_registry()
        self._check_topics()

    def _check_registry(self) -> None:
        for name in ("format", "scores_format"):
            if self.registry.url is None and getattr(self, name) != "json":
                raise SettingsError(
                    f"setting registry.url: expected the registry's address with {name} "
                    f"{getattr(self, name)}"
                )

    def _check_topics(self) -> None:
        outputs = ("scores_topic", "anomalies_topic", "dead_letter_topic")
        topics: dict[str, str | None] = {name: getattr(self, name) for name in outputs}
        topics["snapshots"] = self.snapshots_topic
        topics["registry.schemas_topic"] = self.schemas_topic
        taken = {*self.source_topics}
        for name, topic in topics.items():
            if topic in taken:
                value = short(self.snapshots if name == "snapshots" else topic)
                raise SettingsError(f"setting {name}: expected a topic of its own, got {value}")
            taken |= {topic} if topic else set()

    def _check_kinds(self) -> None:
        kinds = dict(self.kinds)
        for setting_name in ("transforms", "directions", "least"):
            allowed = {"number"} if setting_name == "transforms" else {"number", "count"}
            for name, _ in getattr(self, setting_name):
                if kinds.get(name, "number") not in allowed:
                    raise SettingsError(f"setting {setting_name}: expected numbers, got {name}")
        n_categories = sum(kind == "category" for kind in kinds.values())
        if n_categories > _MOST_CATEGORIES:
            raise SettingsError(
                f"setting kinds: expected at most {_MOST_CATEGORIES} categories, got {n_categories}"
            )
        if self.chosen_fields is None:
            return
        ignored = [name for name, kind in self.kinds if kind == "ignored"]
        if ignored:
            raise SettingsError(
                f"setting kinds: expected no chosen field ignored, got {ignored[0]}"
            )

    def _require_chosen(self, setting: str, names: Sequence[str]) -> None:
        for name in names:
            if self.chosen_fields and name not in self.chosen_fields:
                raise SettingsError(
                    f"setting {setting}: expected fields of the setting features, got {name}"
                )

    @property
    def chosen_fields(self) -> tuple[str, ...] | None:
        """Names of the chosen fields; None if each partition chooses them (`auto`)."""
        return None if isinstance(self.features, str) else self.features

    @property
    def start_timestamp(self) -> int | None:
        """`start` in milliseconds since 1970 (UTC); None if it is no time."""
        if self.start in ("earliest", "latest"):
            return None
        return round(datetime.fromisoformat(self.start).timestamp() * 1000)

    @property
    def uses_transactions(self) -> bool:
        """Whether each partition has a transactional producer."""
        return (
            self.snapshots_topic is not None
            or self.delivery == "exactly_once"
            or self.uses_registry
        )

    @property
    def uses_registry(self) -> bool:
        """Whether records name schemas, which a registry knows."""
        return self.format != "json"

    @property
    def writes_avro(self) -> bool:
        """Whether scores, anomalies and events are Avro."""
        return self.scores_format == "avro"

    @property
    def schemas_topic(self) -> str | None:
        """The topic of the schemas that were accepted; None if records name none."""
        return self.registry.schemas_topic if self.uses_registry else None

    @property
    def snapshots_topic(self) -> str | None:
        """The topic of the snapshots; None if they are elsewhere."""
        return self._snapshots("topic")

    @property
    def snapshot_folder(self) -> str | None:
        """The folder of the snapshots; None if they are elsewhere."""
        return self._snapshots("folder")

    @property
    def snapshot_bucket(self) -> str | None:
        """The address of the snapshots in object storage; None if they are elsewhere."""
        return self.snapshots if self.snapshots.startswith(("s3:", "gs:", "az:")) else None

    def _snapshots(self, wanted: str) -> str | None:
        kind, _, where = self.snapshots.partition(":")
        return where if kind == wanted else None

    @property
    def page_host(self) -> str | None:
        """The host of `page_url`."""
        return self.page_url and urlsplit(self.page_url).hostname

    def incident_address(self, incident: str) -> str | None:
        """Return where people find the incident of this id; None without `page_url`."""
        return self.page_url and f"{self.page_url.rstrip('/')}/incidents/{quote(incident)}"

    @property
    def follows_incidents(self) -> bool:
        """Whether the anomalies topic gets incidents."""
        return "incidents" in self._events

    @property
    def sends_anomalous_records(self) -> bool:
        """Whether the anomalies topic gets each anomalous record."""
        return "records" in self._events

    @property
    def silences(self) -> bool:
        """Whether silences are looked for."""
        return "silences" in self._events

    @property
    def rate_seconds(self) -> float | None:
        """The seconds of the windows whose records are counted; None for none."""
        return None if self.rates is None else window_seconds(self.rates)

    @property
    def entity_events(self) -> tuple[str, ...]:
        """What is told of entities as a whole: `new`, `unusual`; nothing without entities."""
        names = [name.removesuffix("_entities") for name in self._events if "_entities" in name]
        return () if self.entity is None else tuple(names)

    @property
    def _events(self) -> tuple[str, ...]:
        return self.events or ()

    @property
    def max_output_bytes(self) -> int:
        """Size of the largest message for the anomalies and dead-letter topics."""
        return self.max_message_bytes + _MESSAGE_ROOM


def describe(settings: Settings) -> dict[str, Any]:
    """Return the settings as plain data, with secrets masked."""
    return _describe_section(settings)


def secrets(settings: Settings) -> list[str]:
    """Return the secret values, which must not be printed or logged."""
    found = [
        getattr(section, entry.name)
        for section in (settings.security, settings.notify, settings.registry)
        for entry in fields(section)
        if entry.metadata["secret"]
    ]
    return [text for value in found for text in _listed(value)]


def _listed(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value or ()


def _describe_section(section: Any) -> dict[str, Any]:
    return {entry.name: _describe_field(section, entry) for entry in fields(section)}


def _describe_field(section: Any, entry: Any) -> Any:
    value = getattr(section, entry.name)
    if isinstance(value, Section):
        return _describe_section(value)
    if entry.metadata["secret"]:
        return value and "(set)"
    return list(value) if isinstance(value, tuple) else value
