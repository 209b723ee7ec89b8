"""The three positions of one file, its references and its end (docs/formats/files.md#mapped-files)."""

from __future__ import annotations

import errno
import random
import sys
import threading
import time

import pytest
from simulated_disk import SimulatedDisk

from engine.mapped.disk import RealDisk
from engine.mapped.mapped_file import MappedFile
from engine.mapped.transient_pool import TransientStorePool

PAGE = 4096
SIZE = 16 * PAGE


@pytest.fixture(params=["mapped", "by position"])
def mapped(request):
    return request.param == "mapped"


@pytest.fixture
def disk():
    return SimulatedDisk()


@pytest.fixture
def file(tmp_path, mapped):
    disk = RealDisk()
    yield MappedFile(disk.open(tmp_path / "f", SIZE), 10 * SIZE, mapped=mapped)
    disk.close()


def positions(file):
    return file.wrote, file.committed, file.flushed


def test_appends_follow_each_other(file):
    assert file.append(b"abc", 5)
    assert file.append(memoryview(b"de"))
    assert (file.wrote, file.readable, file.flushed, file.store_timestamp) == (5, 5, 0, 5)
    assert file.read(0, 100) == b"abcde"
    assert file.read(3, 1) == b"d"


def test_an_append_that_does_not_fit_changes_nothing(file):
    assert file.append(bytes(SIZE - 1))
    assert not file.append(b"ab")
    assert file.append(b"a")
    assert file.is_full
    assert not file.append(b"a")
    assert file.append(b"")


def test_bytes_encoded_in_place_are_seen_once_they_are_published(tmp_path):
    disk = RealDisk()
    file = MappedFile(disk.open(tmp_path / "f", SIZE), 0)
    file.append(b"ab")
    target = file.target(3)
    target[2:5] = b"cde"
    assert file.read(0, 10) == b"ab"
    file.advance(3, 77)
    assert file.read(0, 10) == b"abcde"
    assert file.store_timestamp == 77
    assert len(file.target(SIZE)) == SIZE
    disk.close()


SELECTED = [
    pytest.param(0, None, b"abcdef", id="all"),
    pytest.param(2, None, b"cdef", id="the rest"),
    pytest.param(2, 3, b"cde", id="some"),
    pytest.param(2, 0, b"", id="nothing at a place"),
    pytest.param(6, 0, b"", id="nothing at the end"),
    pytest.param(6, None, None, id="the rest at the end"),
    pytest.param(4, 3, None, id="over the end"),
    pytest.param(-1, None, None, id="before the file"),
    pytest.param(-1, 2, None, id="some before the file"),
]


@pytest.mark.parametrize(("position", "size", "expected"), SELECTED)
def test_readable_bytes_are_lent(file, position, size, expected):
    file.append(b"abcdef")
    lent = file.select(position, size)
    if expected is None:
        assert lent is None
        assert not file.is_lent
        return
    assert lent.start_offset == 10 * SIZE + position
    assert file.is_lent
    with lent as view:
        assert bytes(view) == expected
    assert not file.is_lent
    with pytest.raises(ValueError, match="released"):
        bytes(view)
    lent.release()
    assert not file.is_lent


UNITS = [
    pytest.param(0, b"\0\0\0\x06ab", id="its own number of bytes"),
    pytest.param(6, b"\0\0\0\x05c", id="up to the end of what may be read"),
    pytest.param(1, None, id="more than there are"),
    pytest.param(4, None, id="far more than there are"),
    pytest.param(8, None, id="no room for a number"),
    pytest.param(7, None, id="room for a number only"),
    pytest.param(-4, None, id="before the file"),
    pytest.param(11, None, id="at the end"),
    pytest.param(1 << 40, None, id="behind the file"),
]


@pytest.mark.parametrize(("position", "expected"), UNITS)
def test_a_unit_is_lent_by_its_leading_size(file, position, expected):
    file.append(b"\0\0\0\x06ab\0\0\0\x05c")
    view = file.hold_unit(position)
    assert (view and bytes(view)) == expected
    assert file.is_lent == (expected is not None)
    if view is not None:
        file.release()
    assert not file.is_lent


@pytest.mark.parametrize("number", [-1, 0, 4, 1 << 30])
def test_an_invalid_size_lends_nothing(file, number):
    file.append(number.to_bytes(4, "big", signed=True) + b"abcd")
    assert file.hold_unit(0) is None
    assert not file.is_lent
    file.shutdown(0, 0)
    assert file.hold_unit(0) is None


DUE = [
    pytest.param(0, 1, 0, 1, id="anything when asked for everything"),
    pytest.param(0, PAGE - 1, 1, 0, id="no whole page"),
    pytest.param(0, PAGE, 1, PAGE, id="one page"),
    pytest.param(10, PAGE + 9, 1, PAGE + 9, id="pages are counted by boundaries"),
    pytest.param(0, 4 * PAGE - 1, 4, 0, id="a byte short of four pages"),
    pytest.param(0, SIZE, 10_000, SIZE, id="a full file is always due"),
    pytest.param(7, 7, 0, 7, id="nothing new"),
]


@pytest.mark.parametrize(("flushed", "wrote", "least", "expected"), DUE)
def test_flushes_only_enough_pages(file, flushed, wrote, least, expected):
    file.set_positions(flushed)
    file.append(bytes(wrote - flushed))
    assert file.flush(least) == expected
    assert file.flushed == expected


def test_a_flush_that_fails_moves_nothing_and_fails_again(disk, tmp_path):
    file = MappedFile(disk.open(tmp_path / "f", SIZE), 0)
    file.append(b"abc")
    disk.fail(errno.EIO, kind="flush", times=1)
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output"):
            file.flush(0)
    assert file.flushed == 0
    assert not file.is_lent


def test_disk_blocks_are_allocated_before_the_map_is_written(disk, tmp_path):
    """Writing into the map of a file without allocated blocks kills the process on a full disk (SIGBUS)."""
    file = MappedFile(disk.open(tmp_path / "f", SIZE), 0)
    disk.fail(errno.ENOSPC, kind="reserve")
    with pytest.raises(OSError, match="No space left"):
        file.append(b"abc")
    with pytest.raises(OSError, match="No space left"):
        file.target(3)
    assert positions(file) == (0, 0, 0)
    disk.heal()
    assert file.append(b"abc")


def test_disk_blocks_are_allocated_in_whole_steps():
    """With large folios the kernel may need blocks for eight megabytes for one written byte, or it kills the
    process.
    """
    requests = []

    class WatchedFile:
        path, size, view = "f", 20 << 20, memoryview(bytearray(20 << 20))

        def reserve(self, start, stop, *, touch):
            requests.append((start >> 20, stop >> 20, touch))

    file = MappedFile(WatchedFile(), 0)
    file.append(b"x")
    file.append(bytes(9 << 20))
    file.append(bytes(9 << 20))
    recovered = MappedFile(WatchedFile(), 0)
    recovered.set_positions((9 << 20) + 5)
    recovered.append(b"x")
    assert requests == [(0, 8, False), (8, 16, False), (16, 20, True), (8, 16, False)], (
        "pages are touched in a hurry only"
    )


def test_a_buffer_of_the_pool_is_read_after_commit_only(disk, tmp_path):
    pool = TransientStorePool(1, SIZE)
    file = MappedFile(disk.open(tmp_path / "f", SIZE), 0, pool_buffer=pool.borrow())
    assert pool.available == 0
    assert file.has_buffer
    file.append(b"abc", 9)
    assert (file.wrote, file.readable, file.read(0, 3)) == (3, 0, b"")
    assert file.flush(0) == 0
    assert file.commit(1) == 0
    assert file.commit(0) == 3
    assert file.read(0, 3) == b"abc"
    assert file.flush(0) == 3
    file.append(bytes(SIZE - 3))
    assert file.commit(4) == SIZE
    assert not file.has_buffer
    assert pool.available == 1
    assert file.flush(4) == SIZE
    assert file.read(0, 4) == b"abc\0"


def test_a_commit_that_fails_keeps_its_bytes_for_the_next(disk, tmp_path):
    pool = TransientStorePool(1, SIZE)
    file = MappedFile(disk.open(tmp_path / "f", SIZE), 0, pool_buffer=pool.borrow())
    file.append(b"abc")
    disk.fail(errno.ENOSPC, kind="write", times=1)
    with pytest.raises(OSError, match="No space left"):
        file.commit(0)
    assert (file.committed, file.readable) == (0, 0)
    assert file.commit(0) == 3
    assert file.read(0, 3) == b"abc"


def test_without_a_buffer_everything_is_committed(file):
    file.append(b"abc")
    assert file.commit(4) == 3


def test_a_referenced_file_stays_until_it_is_released(file, tmp_path):
    file.append(b"abc")
    lent = file.select(0)
    assert not file.destroy(1000, now=0)
    assert not file.available
    assert file.select(0) is None
    assert not file.hold()
    assert (tmp_path / "f").exists()
    assert bytes(lent.view) == b"abc"
    lent.release()
    assert file.destroy(1000, now=1)
    assert not (tmp_path / "f").exists()


def test_a_file_referenced_too_long_is_removed_and_its_lent_bytes_stay(file, tmp_path):
    file.append(b"abc")
    lent = file.select(0)
    assert not file.destroy(1000, now=0)
    assert not file.destroy(1000, now=999)
    assert file.destroy(1000, now=1000)
    assert not (tmp_path / "f").exists()
    assert bytes(lent.view) == b"abc"
    lent.release()
    assert file.destroy(1000, now=1001)


def test_the_last_reader_closes_a_file_that_was_shut_down(file, monkeypatch):
    """References are counted without a lock. None may be lost while readers come and go during a shutdown."""
    file.append(b"abcd")
    closed, inside, ready = [], [], threading.Barrier(5)
    monkeypatch.setattr(type(file._file), "close", lambda _: closed.append(len(inside)))

    def read():
        ready.wait()
        while file.hold():
            inside.append(None)
            inside.pop()
            file.release()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        readers = [threading.Thread(target=read) for _ in range(4)]
        for reader in readers:
            reader.start()
        ready.wait()
        time.sleep(0.02)
        file.shutdown(1000, now=0)
        for reader in readers:
            reader.join()
    finally:
        sys.setswitchinterval(interval)
    assert closed == [0]
    assert not file.is_lent
    assert file.destroy(1000, now=1)


def test_a_flush_of_a_file_that_was_shut_down_succeeds(file):
    file.append(b"abc")
    file.shutdown(1000, now=0)
    assert file.flush(0) == 3


def test_a_destroyed_file_gives_its_buffer_back(disk, tmp_path):
    pool = TransientStorePool(1, SIZE)
    file = MappedFile(disk.open(tmp_path / "f", SIZE), 0, pool_buffer=pool.borrow())
    assert file.destroy(1000, now=0)
    assert pool.available == 1


def test_a_closed_file_opens_again(file):
    file.append(b"abc")
    file.close()
    assert file.read(0, 3) == b"abc"
    assert "wrote=3" in repr(file)
    assert file.path.endswith("f")


@pytest.mark.parametrize("seed", range(20))
def test_the_positions_are_ordered_whatever_happens(tmp_path, seed):
    rng = random.Random(seed)
    pool = TransientStorePool(1, SIZE)
    buffered = rng.random() < 0.5
    disk = SimulatedDisk()
    file = MappedFile(disk.open(tmp_path / "f", SIZE), 0, pool_buffer=pool.borrow() if buffered else None)
    expected = bytearray()
    for _ in range(200):
        match rng.randrange(3):
            case 0:
                data = rng.randbytes(rng.randint(1, 2 * PAGE))
                if file.append(data):
                    expected += data
            case 1:
                file.commit(rng.choice((0, 1, 4)))
            case 2:
                file.flush(rng.choice((0, 1, 4)))
        assert file.flushed <= file.readable <= file.wrote <= SIZE
        assert file.wrote == len(expected)
        assert file.read(0, SIZE) == bytes(expected[: file.readable])
        saved = disk.after_power_loss(rng).open(tmp_path / "f", SIZE).read(0, file.flushed)
        assert saved == bytes(expected[: file.flushed])


def test_prefaulted_pages_keep_their_bytes(tmp_path):
    """Pages that are faulted in ahead must keep the file's contents, zeros and older bytes alike."""
    size = 20 << 20
    (tmp_path / "f").write_bytes(bytes(17 << 20) + b"old" + bytes(size - (17 << 20) - 3))
    disk = RealDisk()
    file = MappedFile(disk.open(tmp_path / "f", size), 0)
    for letter in (b"a", b"b", b"c"):
        file.append(letter * (5 << 20))
    file.append(b"d" * (1 << 20) + b"dd")
    disk.close()
    data = (tmp_path / "f").read_bytes()
    assert data[: 16 << 20] == b"a" * (5 << 20) + b"b" * (5 << 20) + b"c" * (5 << 20) + b"d" * (1 << 20)
    assert data[16 << 20 : (17 << 20) + 3] == b"dd" + bytes((1 << 20) - 2) + b"old"
    assert not any(data[(17 << 20) + 3 :])


def test_blocks_allocated_by_another_thread_are_not_allocated_again():
    requests, reports = [], []

    class WatchedFile:
        path, size, view = "f", 40 << 20, memoryview(bytearray(40 << 20))

        def reserve(self, start, stop, *, touch):
            requests.append((start >> 20, stop >> 20, touch))

    file = MappedFile(WatchedFile(), 0)
    file.ahead = reports.append
    file.append(bytes(9 << 20))
    assert reports == [], "nobody writes quickly yet"
    file.append(bytes(8 << 20))
    assert reports == [file]
    file.reserve_ahead()
    file.reserve_ahead()
    file.append(bytes(8 << 20))
    assert reports == [file, file], "told again where the room made ahead is begun"
    assert requests == [(0, 16, False), (16, 24, True), (24, 32, True)]
    file.append(bytes(8 << 20))
    file.append(bytes(7 << 20))
    file.reserve_ahead()
    assert requests[3:] == [(32, 40, True)]
    assert len(reports) == 2, "behind the last step there is nothing"
