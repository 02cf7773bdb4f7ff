"""Stores of snapshots, and what they hold of a partition."""

import asyncio
from contextlib import asynccontextmanager

from faust_oslrau.app.kafka.transactions import Producers
from faust_oslrau.app.snapshots.topic import TopicStore

MANIFEST = {
    "format": 1, "next_offset": 3, "size": 5, "checksum": "", "chunks": [0], "previous": None,
}  # fmt: skip


async def stored(store, tp):
    """Return offset and content of each snapshot, in the order in which the store yields them."""
    return [(each.next_offset, each.data.read()) async for each in store.load(tp)]


def load(store, tp):
    return asyncio.run(stored(store, tp))


@asynccontextmanager
async def owned(store, tp):
    """A store of a worker that owns a partition for a while."""
    await store.open(tp)
    yield store
    await store.close()


@asynccontextmanager
async def owned_in_topic(servers, topic, tp, app_id="app"):
    """The same of the store in a topic, for which the worker has producers."""
    arguments = {"bootstrap_servers": servers}
    producers = Producers(f"{topic}-{app_id}", arguments)
    await producers.open(tp)
    async with owned(TopicStore(topic, app_id, producers, arguments), tp) as store:
        yield store
    await producers.close()
