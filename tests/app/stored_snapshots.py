"""What a snapshot store holds of a partition, for tests of stores."""

import asyncio


def load(store, tp):
    """Return offset and content of each snapshot, in the order in which the store yields them."""

    async def load_all():
        return [(stored.next_offset, stored.data.read()) async for stored in store.load(tp)]

    return asyncio.run(load_all())


def reject_newest(store, tp):
    """Reject the snapshot that the store yields first."""

    async def reject():
        async for stored in store.load(tp):
            await store.reject(tp, stored)
            return

    asyncio.run(reject())
