"""Workers that need a schema registry, what they wrote, and a replay of their topic."""

import random
from io import BytesIO

import fastavro
import orjson
from command_line import run_well

from faust_oslrau.topics.formats import framed

SCHEMA = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "temperature", "type": "double"},
        {"name": "load", "type": ["null", "double"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "mode", "type": {"type": "enum", "name": "Mode", "symbols": ["idle", "busy"]}},
        {"name": "vibration", "type": {
            "type": "record", "name": "Vibration", "fields": [{"name": "rms", "type": "double"}],
        }},
    ],
}  # fmt: skip


def rows(number, seed=0):
    rng = random.Random(seed)
    for i in range(number):
        level = rng.gauss(0, 1)
        yield {
            "temperature": 20 + level,
            "load": None if i % 7 == 0 else level + rng.gauss(0, 0.3),
            "at": 1_790_000_000_000 + 1000 * i,
            "mode": "busy" if level > 0 else "idle",
            "vibration": {"rms": rng.random()},
            "firmware": "1.2",
        }


def avro(schema_id, schema, found):
    content = BytesIO()
    fastavro.schemaless_writer(content, fastavro.parse_schema(schema), found)
    return framed(schema_id, content.getvalue())


class Deployment:
    """Starts workers, reads what they wrote, and replays their topic."""

    def __init__(self, client, settings, start_worker, registry, folder, changes):
        self.client, self.settings = client, settings
        self._start, self._folder = start_worker, folder
        self.changes = {
            "format": "avro",
            "registry_url": registry.url,
            "registry_schemas_topic": f"{settings.app_id}.schemas",
            "time": "at",
            **changes,
        }
        client.create(settings.app_id)

    @property
    def topic(self):
        return self.settings.app_id

    def start(self, **changes):
        return self._start(**self.changes, **changes)

    def send(self, values):
        self.client.send(self.topic, [(0, value, b"machine-1") for value in values])

    def live(self):
        """Return the scores and dead letters of the workers."""
        return tuple(
            [message.value for message in self.client.read(topic)]
            for topic in (self.settings.scores_topic, self.settings.dead_letter_topic)
        )

    def reasons(self):
        found = self.client.read(self.settings.dead_letter_topic)
        return [dict(message.headers)["oslrau-reason"].decode() for message in found]

    def replay(self):
        """Return the scores of a replay, and its rejected records by reason."""
        out = self._folder / "replayed"
        told = self.run("replay", "--out", out, "--json")
        return out.read_bytes().splitlines(), orjson.loads(told)["rejected"]

    def outputs(self):
        """Return the topics of scores and of anomalies by the names of their schemas."""
        return {"scores": self.settings.scores_topic, "anomalies": self.settings.anomalies_topic}

    def environment(self):
        """Return the environment of a command with the settings of the workers."""
        names = {
            **self.changes,
            "app_id": self.settings.app_id,
            "source_topics": self.topic,
            "anomalies_topic": self.settings.anomalies_topic,
            "broker": self.settings.broker,
        }
        return {f"OSLRAU_{name.upper()}": str(value) for name, value in names.items()}

    def run(self, *arguments):
        """Run a command with the settings of the workers, and return what it prints."""
        return run_well(*arguments, env=self.environment()).stdout
