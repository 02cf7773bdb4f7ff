"""The worker's work done by Quix Streams: ``python -m benchmarks.pipeline_quix``.

It has its own virtual environment, because it needs an older confluent-kafka than the demo.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

from quixstreams import Application
from quixstreams.sinks import BatchingSink, SinkBatch

from faust_oslrau.app.settings import Settings, load_settings
from faust_oslrau.learner import compile_kernels
from faust_oslrau.topics import OutMessage, Record

from .pipeline_readers import TAKE, Pipelines

# Records between two checkpoints, when the sink gets them: full batches of every partition.
_CHECKPOINT = 16 * TAKE


class ScoringSink(BatchingSink):
    """Scores the records since the last checkpoint, partition by partition."""

    def __init__(self, settings: Settings, producer: Any) -> None:
        super().__init__()
        self._settings, self._producer = settings, producer
        self._pipelines = Pipelines(settings)

    def write(self, batch: SinkBatch) -> None:
        """Score the batch, and send the scores."""
        for items in batch.iter_chunks(TAKE):
            records = [
                Record(batch.topic, batch.partition, i.offset, i.timestamp, i.key, i.value)
                for i in items
            ]
            block = self._pipelines[batch.partition].process(records)
            self._send(self._settings.scores_topic, batch.partition, block.scores)
            self._send(self._settings.anomalies_topic, batch.partition, block.anomalies)

    def _send(self, topic: str, partition: int, messages: list[OutMessage]) -> None:
        for message in messages:
            self._producer.produce(
                topic, message.value, message.key, partition=partition, timestamp=message.timestamp
            )


def run(settings: Settings, folder: str) -> None:
    """Run an application that hands its records to the sink."""
    app = Application(
        settings.broker,
        consumer_group=settings.app_id,
        auto_offset_reset="earliest",
        commit_every=_CHECKPOINT,
        producer_extra_config={"compression.type": settings.compression},
        state_dir=folder,
    )
    with app.get_producer() as producer:
        topics = [app.topic(name, value_deserializer="bytes") for name in settings.source_topics]
        for frame in map(app.dataframe, topics):
            frame.sink(ScoringSink(settings, producer))
        app.run()


if __name__ == "__main__":
    compile_kernels()
    with tempfile.TemporaryDirectory() as data:
        run(load_settings(None, os.environ), data)
