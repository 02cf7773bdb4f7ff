"""What a snapshot store holds of a partition, for tests of stores."""

import asyncio

MANIFEST = {
    "format": 1, "next_offset": 3, "size": 5, "checksum": "", "chunks": [0], "previous": None,
}  # fmt: skip


def load(store, tp):
    """Return offset and content of each snapshot, in the order in which the store yields them."""

    async def load_all():
        return [(stored.next_offset, stored.data.read()) async for stored in store.load(tp)]

    return asyncio.run(load_all())
