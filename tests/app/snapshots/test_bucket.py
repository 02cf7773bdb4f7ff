"""Snapshots in object storage: in memory, and on a real S3 server behind a door that can fail."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys

import obstore
import pytest
from door import Door
from faust.types import TP
from obstore.store import LocalStore, MemoryStore
from real_bucket import SECRET
from stored_snapshots import load

from faust_oslrau.app.errors import SettingsError
from faust_oslrau.app.kafka.transactions import LostPartitionError, Producers
from faust_oslrau.app.settings import Settings
from faust_oslrau.app.snapshots import SnapshotError
from faust_oslrau.app.snapshots.bucket import BucketStore, bucket_store
from faust_oslrau.app.snapshots.configured import snapshot_store
from faust_oslrau.learner.state import Extent

_TP = TP("features", 3)
_FOLDER = "app/features/3"
_CLAIM = f"{_FOLDER}/claim.json"
_LARGE = random.Random(7).randbytes(20_000_000)


@pytest.fixture(params=["memory", "s3"])
def worker(request):
    """A function that gives another worker's store, of the same bucket."""
    if request.param == "memory":
        objects = MemoryStore()
        return lambda: BucketStore(objects, "memory://", "app")
    address = request.getfixturevalue("address")
    return lambda: bucket_store(address, "app")


def _opened(store, **how):
    asyncio.run(store.open(_TP, **how))
    return store


def _save(store, *offsets, size=0):
    for offset in offsets:
        data = Extent.of(_LARGE[:size] or b"state at %d" % offset)
        asyncio.run(store.save(_TP, offset, data))


def _seen(worker):
    """Return the offsets of the snapshots that a reader finds."""
    return [offset for offset, _ in load(_opened(worker(), read_only=True), _TP)]


def _objects(store):
    found = obstore.list(store._store, _FOLDER).collect()
    return sorted(each["path"].removeprefix(f"{_FOLDER}/") for each in found)


def test_a_former_owner_is_told_so_and_what_it_has_left_is_deleted_by_the_next_one(worker):
    former = _opened(worker())
    _save(former, 5, 30, 200)
    _opened(worker())
    with pytest.raises(LostPartitionError, match="another worker has claimed it"):
        _save(former, 300)
    with pytest.raises(LostPartitionError):
        asyncio.run(former.discard(_TP))
    owner = _opened(worker())
    assert [name[:20] for name in _objects(owner)] == [f"{30:020d}", f"{200:020d}", "claim.json"]
    assert _seen(worker) == [200, 30]


def test_of_two_that_open_a_partition_at_once_one_is_its_owner(worker):
    both = [worker(), worker()]

    async def open_both():
        return await asyncio.gather(*(s.open(_TP) for s in both), return_exceptions=True)

    refused = asyncio.run(open_both())
    owners = []
    for store, error in zip(both, refused, strict=True):
        assert error is None or isinstance(error, LostPartitionError)
        try:
            _save(store, 10)
            owners.append(store)
        except LostPartitionError:
            pass
    assert len(owners) == 1 and _seen(worker) == [10]


def test_a_reader_takes_the_partition_from_nobody(worker):
    assert _seen(worker) == _objects(worker()) == []
    store = _opened(worker())
    _save(store, 10)
    before = _objects(store)
    assert _seen(worker) == [10]
    assert _objects(store) == before
    _save(store, 20)


def test_a_revoked_partition_is_not_saved(worker):
    store = _opened(worker())
    asyncio.run(store.close())
    with pytest.raises(LostPartitionError):
        _save(store, 10)


@pytest.mark.parametrize(
    "claim",
    [
        None, b"", b"[" * 9_000, b"[]", b'{"format": 2, "owner": "o", "snapshots": []}',
        b'{"format": 1, "owner": 3, "snapshots": []}',
        b'{"format": 1, "owner": "o", "snapshots": ["../../other/0/claim.json"]}',
        b'{"format": 1, "owner": "o", "snapshots": [3]}',
        b'{"format": 1, "owner": "o", "snapshots": null}', b" " * 20_000,
    ],
)  # fmt: skip
def test_without_a_valid_claim_the_snapshots_themselves_count(claim, caplog):
    objects = MemoryStore()
    former = _opened(BucketStore(objects, "memory://", "app"))
    _save(former, 10, 20)
    obstore.put(objects, f"{_FOLDER}/notes.txt", b"not a snapshot")
    obstore.delete(objects, _CLAIM)
    if claim is not None:
        obstore.put(objects, _CLAIM, claim)
    store = _opened(BucketStore(objects, "memory://", "app"))
    assert [offset for offset, _ in load(store, _TP)] == [20, 10]
    assert ("claim.json is damaged" in caplog.text) == (claim is not None)
    _save(store, 30)
    with pytest.raises(LostPartitionError):
        _save(former, 40)
    assert [offset for offset, _ in load(store, _TP)] == [30, 20]
    assert "notes.txt" in _objects(store)


def test_a_snapshot_that_somebody_deleted_is_passed_over(caplog):
    objects = MemoryStore()
    store = _opened(BucketStore(objects, "memory://", "app"))
    _save(store, 10, 20)
    newest = _objects(store)[1]
    obstore.delete(objects, f"{_FOLDER}/{newest}")
    assert [offset for offset, _ in load(store, _TP)] == [10]
    assert f"{newest} cannot be read" in caplog.text


def test_a_store_without_conditional_puts_is_refused(tmp_path):
    local = LocalStore(tmp_path)
    obstore.put(local, _CLAIM, json.dumps({"format": 1, "owner": "o", "snapshots": []}).encode())
    with pytest.raises(SnapshotError, match="not yet implemented"):
        _opened(BucketStore(local, str(tmp_path), "app"))


_SAVES = """
import asyncio, sys
from faust.types import TP
from faust_oslrau.app.snapshots.bucket import bucket_store
from faust_oslrau.learner.state import Extent

async def save():
    store = bucket_store(sys.argv[1], "app")
    await store.open(TP("features", 3))
    await store.save(TP("features", 3), 10, Extent.of(b"state at 10"))
    print("saving", flush=True)
    await store.save(TP("features", 3), 20, Extent.of(bytes(20_000_000)))

asyncio.run(save())
"""


@pytest.mark.parametrize(
    ("room", "holds"),
    [(9_000_000, None), (None, b"PUT /bucket-%d/some/prefix/app/features/3/claim.json")],
    ids=["a piece", "all but the claim"],
)
def test_a_worker_that_is_killed_during_an_upload_leaves_the_snapshot_before(
    address, buckets, door, monkeypatch, room, holds
):
    process = subprocess.Popen([sys.executable, "-c", _SAVES, address], stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"saving\n"
        door.room, door.holds = room, holds and holds % int(address.split("/")[2].split("-")[1])
        assert door.stuck.wait(120)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
    monkeypatch.setenv("AWS_ENDPOINT_URL", buckets.url)
    store = _opened(bucket_store(address, "app"))
    assert load(store, _TP) == [(10, b"state at 10")]
    door.open()  # what was under way arrives now
    _save(store, 20)
    assert load(store, _TP) == [(20, b"state at 20"), (10, b"state at 10")]
    assert len(_objects(store)) == 3


def test_a_store_that_is_away_is_an_error_until_it_is_back(address, buckets, door):
    store = _opened(bucket_store(address, "app"))
    _save(store, 10)
    door.shut()
    with pytest.raises(SnapshotError, match="error sending request"):
        _save(store, 20)
    with pytest.raises(SnapshotError):
        load(store, _TP)
    with pytest.raises(SnapshotError):
        _opened(bucket_store(address, "app"))
    back = Door(buckets.port, door.port)
    try:
        _save(store, 20)
        assert [offset for offset, _ in load(store, _TP)] == [20, 10]
    finally:
        back.shut()


@pytest.mark.parametrize("size", [0, len(_LARGE)], ids=["a put", "pieces"])
def test_a_store_that_answers_late_is_waited_for(size, address, door):
    store = _opened(bucket_store(address, "app"))
    door.late = 0.3
    _save(store, 10, size=size)
    owner = _opened(bucket_store(address, "app"))
    with pytest.raises(LostPartitionError):
        _save(store, 20)
    door.open()
    assert load(owner, _TP) == [(10, _LARGE[:size] or b"state at 10")]


@pytest.mark.parametrize(
    ("fault", "size", "error"),
    [
        ({"is_full": True}, 0, "507"),
        ({"is_full": True}, len(_LARGE), "507"),
        ({"room": 0}, len(_LARGE), None),  # it does not answer, and is given up
        ({"deaf_to": b"claim.json"}, 0, None),  # the answer is lost
        ({"deaf_to": b"PUT "}, 0, None),
    ],
    ids=["a full one", "one without room for pieces", "a silent one", "a lost claim", "a lost put"],
)
def test_a_save_that_fails_costs_its_owner_nothing(fault, size, error, address, door):
    store = _opened(bucket_store(address, "app"))
    _save(store, 10, 20)
    vars(door).update(fault)
    saving = store.save(_TP, 30, Extent.of(_LARGE[:size] or b"state at 30"))
    with pytest.raises((SnapshotError, TimeoutError), match=error):
        asyncio.run(asyncio.wait_for(saving, 1 if "room" in fault else 120))
    door.open()
    assert [offset for offset, _ in load(store, _TP)] == [20, 10]
    _save(store, 40)
    assert [offset for offset, _ in load(store, _TP)] == [40, 20]
    assert len(_objects(store)) == 3


def test_a_missing_bucket_is_named_in_one_line(door, address):
    with pytest.raises(SnapshotError) as caught:
        _opened(bucket_store("s3://not-there/prefix", "app"))
    assert str(caught.value) == (
        "s3://not-there/prefix/app/features/3: NoSuchBucket: The specified bucket does not exist"
    )


def test_a_server_without_tls_is_told_with_the_variable_it_needs(door, address, monkeypatch):
    monkeypatch.delenv("AWS_ALLOW_HTTP")
    with pytest.raises(SnapshotError, match="without TLS it needs AWS_ALLOW_HTTP=true") as caught:
        _opened(bucket_store(address, "app"))
    assert "\n" not in str(caught.value)


def test_no_message_holds_a_password(address, door, monkeypatch, caplog):
    """Also not one that is a part of the requests' addresses, as in Azure's signatures."""
    caplog.set_level(0)
    port = door.port
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "devstoreaccount1")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", f"sv=2026&sig={SECRET}")
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("AZURE_ALLOW_HTTP", "true")
    door.is_full = True
    for store in (bucket_store(address, "app"), bucket_store("az://container", "app")):
        with pytest.raises(SnapshotError) as caught:
            _opened(store)
        assert "507" in str(caught.value)
        told = (caught.value, caught.value.__cause__, caplog.text)
        assert SECRET not in "".join(map(repr, told))


def test_what_the_environment_lacks_is_said_in_one_line(monkeypatch):
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(SettingsError, match="Account must be specified") as caught:
        bucket_store("az://container/prefix", "app")
    assert "setting snapshots: " in str(caught.value) and "\n" not in str(caught.value)


def test_a_missing_library_is_named_with_the_extra(monkeypatch):
    monkeypatch.delitem(sys.modules, "faust_oslrau.app.snapshots.bucket", raising=False)
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(SettingsError, match=r"pip install 'faust-oslrau\[object-storage\]'"):
        snapshot_store(Settings(snapshots="s3://bucket"), Producers("app", {}))
