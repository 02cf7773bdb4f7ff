"""A copy of a snapshot on its way to the store."""

import gc
import resource
import tempfile
import tracemalloc

import pytest

from faust_oslrau.app.snapshots import spooled

_STATE = bytearray(range(256)) * 100_000  # 25.6 MB, which change after the copy
_PARTS = [memoryview(_STATE)[:5], memoryview(_STATE)[5:]]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of temporary files, which has none at first."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_pieces_are_the_snapshot_as_it_was(folder):
    for parts in (_PARTS, [b"a small", b" one"], []):
        before = b"".join(parts)
        with spooled(parts) as copy:
            _STATE.reverse()
            assert copy.size == len(before)
            for _ in range(2):  # a store may try again
                pieces = list(copy.pieces(900_000))
                assert b"".join(pieces) == before
                assert all(len(piece) == 900_000 for piece in pieces[:-1])


def test_a_large_snapshot_takes_no_memory_and_leaves_no_file(folder):
    gc.collect()
    tracemalloc.start()
    with spooled(_PARTS) as copy:
        assert sum(map(len, copy.pieces(900_000))) == len(_STATE)
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    tracemalloc.stop()
    assert list(folder.iterdir()) == []


def test_without_room_in_a_temporary_file_it_takes_memory_and_says_so(folder, monkeypatch, caplog):
    def spool():
        with spooled(_PARTS) as copy:
            assert b"".join(copy.pieces(1_000_000)) == _STATE

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (12_000_000, limits[1]))  # as on a full disk
    try:
        spool()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "missing"))
    spool()
    told = "no room for a snapshot in a temporary file, it takes memory: "
    assert caplog.text.count(told) == 2 and "No such file" in caplog.text
