"""Send readings of simulated machines to the first source topic, until SIGTERM."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from itertools import islice

from aiokafka import AIOKafkaProducer

from faust_oslrau.app.demo.feed import sensor_messages
from faust_oslrau.app.kafka.clients import connected, connected_admin, partition_count
from faust_oslrau.app.kafka.security import client_arguments
from faust_oslrau.app.settings import Settings, load_settings

_TICKS_PER_SECOND = 10


async def generate(settings: Settings, rate: int, seed: int) -> None:
    """Send about `rate` readings a second."""
    topic = settings.source_topics[0]
    async with connected_admin(settings) as admin:
        feed = sensor_messages(await partition_count(admin, topic), seed)
    async with connected(AIOKafkaProducer(**client_arguments(settings)), settings) as producer:
        while True:
            for message in islice(feed, max(1, rate // _TICKS_PER_SECOND)):
                await producer.send(
                    topic, message.value, key=message.key, partition=message.partition
                )
            await asyncio.sleep(1 / _TICKS_PER_SECOND)


def main() -> None:
    """Read the options and start to send."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rate", type=int, default=500, help="readings a second")
    options.add_argument("--seed", type=int, default=0, help="of the machines")
    chosen = options.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        asyncio.run(generate(load_settings(None, os.environ), chosen.rate, chosen.seed))
    except KeyboardInterrupt:
        print("stopped")


if __name__ == "__main__":
    main()
