"""Stores snapshots in object storage: `APP_ID/TOPIC/PARTITION/OFFSET-OWNER.snapshot`.

Beside them lies the partition's claim, which names its owner and the snapshots that count. Whoever
opens a partition to write puts a claim of its own in place of the one that it has read; each
snapshot that is saved is a new claim, put only if the claim before is still there. So the puts of
a former owner fail, and what it has uploaded counts for nothing.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import from_url

from faust_oslrau.app.errors import SettingsError
from faust_oslrau.app.kafka.transactions import LostPartitionError
from faust_oslrau.app.logs import at
from faust_oslrau.learner.errors import StateError
from faust_oslrau.learner.state import Extent

from .claim import Claim, is_snapshot, new_owner, offset_of, snapshot_name
from .spool import Spool
from .store import SnapshotError, StoredSnapshot

if TYPE_CHECKING:
    from faust.types import TP
    from obstore import ObjectMeta, PutMode, PutResult, UpdateVersion
    from obstore.store import ObjectStore, RetryConfig

logger = logging.getLogger(__name__)

_CLAIM = "claim.json"
_MAX_CLAIM_BYTES = 10_000
# Each is one request, which has to be answered within half a minute.
_PIECE_BYTES = 8 * 2**20
# So that an upload does not take the memory of all its pieces.
_PIECES_AT_ONCE = 2
# The worker tries again by itself, and tells it.
_RETRIES: RetryConfig = {"max_retries": 2, "retry_timeout": timedelta(seconds=10)}
_TAG = re.compile(r"<[^>]*>")
# What is wrong, as the servers of S3, Azure and Google say it.
_TOLD = re.compile(r"<Code>([^<]+)</Code>\s*<Message>([^<]+)</Message>")
_MAX_REASON = 300
_WITHOUT_TLS = "; without TLS it needs AWS_ALLOW_HTTP=true, of Azure AZURE_ALLOW_HTTP=true"


@dataclass(slots=True)
class _Place:
    """An open partition: its claim, the condition of the next put, and the objects beside it."""

    folder: str
    claim: Claim
    condition: PutMode
    objects: set[str]

    @property
    def claim_path(self) -> str:
        return f"{self.folder}/{_CLAIM}"

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}"


class BucketStore:
    """Stores the last two snapshots of each partition in object storage.

    Parameters
    ----------
    store
        The bucket, or what lies under a prefix of it.
    address
        How messages name it.
    app_id
        The deployment's id, part of all paths.
    """

    def __init__(self, store: ObjectStore, address: str, app_id: str) -> None:
        self._store = store
        self._address = address.rstrip("/")
        self._app_id = app_id
        self._places: dict[TP, _Place] = {}

    async def open(self, tp: TP, *, read_only: bool = False) -> None:
        """Read the partition's claim, and replace it by an own one unless `read_only`.

        Raises
        ------
        SnapshotError
            The store cannot be used.
        LostPartitionError
            Another worker claims the partition at this moment.
        """
        with self._errors(tp):
            place = await self._found(tp)
            if not read_only:
                place.claim = Claim(new_owner(), place.claim.snapshots)
                await self._put(place, place.claim)
            self._places[tp] = place

    async def load(self, tp: TP) -> AsyncGenerator[StoredSnapshot, None]:
        """Yield the partition's snapshots, the one with the highest offset first.

        Raises
        ------
        SnapshotError
            The store does not answer: an older snapshot is no substitute then.
        """
        place = self._place(tp)
        for name in place.claim.newest_first():
            where = f"{self._address}/{place.path(name)}"
            with self._errors(tp):
                try:
                    data, written = await self._fetched(place.path(name))
                except FileNotFoundError:
                    logger.error("snapshot %s cannot be read: it is gone", where, extra=at(tp))
                    continue
            yield StoredSnapshot(where, offset_of(name), written, data)

    async def reject(self, tp: TP, stored: StoredSnapshot) -> None:
        """Leave the snapshot out of the next claim."""
        place = self._place(tp)
        place.claim = place.claim.without(stored.where.rpartition("/")[2])

    async def save(self, tp: TP, next_offset: int, data: Extent) -> None:
        """Upload a snapshot and put a claim that names it."""
        place = self._place(tp)
        name = snapshot_name(next_offset, place.claim.owner)
        place.objects.add(name)
        with self._errors(tp):
            await self._upload(place.path(name), data)
            await self._put(place, place.claim.saved(name))

    async def discard(self, tp: TP) -> None:
        """Put a claim that names no snapshot."""
        place = self._place(tp)
        with self._errors(tp):
            await self._put(place, Claim(place.claim.owner))

    async def close(self) -> None:
        """Forget the claims of all partitions."""
        self._places.clear()

    async def _found(self, tp: TP) -> _Place:
        """Return a partition as it is in the store."""
        folder = f"{self._app_id}/{tp[0]}/{tp[1]}"
        # Listed before the claim is read: what others upload later is never taken for left over.
        objects = await obstore.list(self._store, folder).collect_async()
        names = {found["path"].rpartition("/")[2] for found in objects}
        snapshots = set(filter(is_snapshot, names))
        claim, condition = await self._read(f"{folder}/{_CLAIM}")
        if claim is None:
            # All snapshots count: each is whole, and by the promise none is wrong.
            claim = Claim("", tuple(sorted(snapshots, reverse=True)))
        return _Place(folder, claim, condition, snapshots)

    async def _read(self, path: str) -> tuple[Claim | None, PutMode]:
        """Return a claim, None without a valid one, and the condition to put another."""
        try:
            found = await obstore.get_async(self._store, path)
        except FileNotFoundError:
            return None, "create"
        try:
            if found.meta["size"] > _MAX_CLAIM_BYTES:
                raise StateError(f"claim: expected at most {_MAX_CLAIM_BYTES:,} bytes")
            claim = Claim.from_bytes(bytes(await found.bytes_async()))
        except StateError as error:
            logger.error("%s/%s is damaged: %s", self._address, path, error)
            claim = None
        return claim, _unchanged(found.meta)

    async def _put(self, place: _Place, claim: Claim) -> None:
        """Put a claim unless another owner has put one, and delete what it does not name."""
        try:
            await self._replace(place, claim)
        except (AlreadyExistsError, PreconditionError):
            found, condition = await self._read(place.claim_path)
            if found is None or found.owner != claim.owner:
                raise LostPartitionError("another worker has claimed it") from None
            place.condition = condition  # it was an own put, whose answer was lost
            await self._replace(place, claim)
        await self._delete_unnamed(place)

    async def _replace(self, place: _Place, claim: Claim) -> None:
        put = await obstore.put_async(
            self._store, place.claim_path, claim.to_bytes(), mode=place.condition
        )
        place.claim, place.condition = claim, _unchanged(put)

    async def _delete_unnamed(self, place: _Place) -> None:
        """Delete what no owner can name any more; a failure is logged, the next put retries."""
        for name in place.objects - {*place.claim.snapshots}:
            try:
                with suppress(FileNotFoundError):
                    await obstore.delete_async(self._store, place.path(name))
                place.objects.discard(name)
            except (BaseError, OSError) as error:
                where = f"{self._address}/{place.path(name)}"
                logger.warning("snapshot %s not deleted, will retry: %s", where, _reason(error))

    async def _upload(self, path: str, data: Extent) -> None:
        small = data.size <= _PIECE_BYTES
        await obstore.put_async(
            self._store,
            path,
            data.read() if small else data.pieces(_PIECE_BYTES),
            chunk_size=_PIECE_BYTES,
            max_concurrency=_PIECES_AT_ONCE,
        )

    async def _fetched(self, path: str) -> tuple[Extent, int]:
        """Return an object's content, and when it was written, in milliseconds since 1970."""
        meta = await obstore.head_async(self._store, path)
        spool = Spool(meta["size"])
        for start in range(0, meta["size"], _PIECE_BYTES):
            piece = await obstore.get_range_async(
                self._store, path, start=start, length=_PIECE_BYTES
            )
            spool.add(bytes(piece))
        return spool.extent, round(1000 * meta["last_modified"].timestamp())

    def _place(self, tp: TP) -> _Place:
        if tp not in self._places:
            raise LostPartitionError("it has been revoked")
        return self._places[tp]

    @contextmanager
    def _errors(self, tp: TP) -> Iterator[None]:
        """Raise the store's errors as SnapshotError, with the place."""
        try:
            yield
        except (BaseError, OSError, NotImplementedError) as error:
            where = f"{self._address}/{self._app_id}/{tp[0]}/{tp[1]}"
            raise SnapshotError(f"{where}: {_reason(error)}") from error


def bucket_store(address: str, app_id: str) -> BucketStore:
    """Return the store of an address such as s3://bucket/prefix; the environment has the rest.

    Raises
    ------
    SettingsError
        The environment lacks what such an address needs, or holds invalid values.
    """
    try:
        return BucketStore(from_url(address, retry_config=_RETRIES), address, app_id)
    except (BaseError, ValueError) as error:
        raise SettingsError(
            f"setting snapshots: expected an address that the environment has access to, got "
            f"{address!r}: {_reason(error)}"
        ) from error


def _unchanged(version: ObjectMeta | PutResult) -> PutMode:
    """Return the condition that an object is still of this version."""
    condition: UpdateVersion = {}
    if version["e_tag"] is not None:
        condition["e_tag"] = version["e_tag"]
    if version["version"] is not None:
        condition["version"] = version["version"]
    return condition


def _reason(error: Exception) -> str:
    """Return an error in one line: without the server's XML, and what only repeats it."""
    text, _, debug = str(error).partition("\n\nDebug source")
    hint = _WITHOUT_TLS if "BadScheme" in debug else ""
    if told := _TOLD.search(text):
        text = f"{told[1]}: {told[2]}"
    return " ".join(_TAG.sub(" ", text).split())[:_MAX_REASON] + hint
