"""A sequence of files of one length (docs/formats/files.md#folders, #sequences)."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from simulated_disk import SimulatedDisk

from engine.errors import StoreError, WrongFileSize
from engine.files.layout import queue_file_name
from engine.mapped.disk import RealDisk
from engine.mapped.mapped_file_queue import MappedFileQueue
from engine.mapped.transient_pool import TransientStorePool

SIZE = 1000


@pytest.fixture
def disk():
    real_disk = RealDisk()
    yield real_disk
    real_disk.close()


@pytest.fixture
def queue(disk, tmp_path):
    return MappedFileQueue(disk, [tmp_path / "log"], SIZE)


def fill(queue, size, start=0):
    """Append ``size`` bytes, each equal to its offset modulo 251, over as many files as needed."""
    written = 0
    while written < size:
        file = queue.last_or_create(start)
        part = min(size - written, SIZE - file.wrote)
        first_offset = file.start_offset + file.wrote
        file.append(bytes((first_offset + n) % 251 for n in range(part)), 1000 + first_offset)
        written += part


def starts(queue):
    return [file.start_offset for file in queue.files]


def on_disk(folder):
    return sorted(int(path.name) for path in folder.iterdir())


def test_an_empty_queue(queue, tmp_path):
    queue.load()
    assert (queue.min_offset, queue.max_offset, queue.wrote_offset, queue.total_size) == (-1, 0, 0, 0)
    assert queue.first is queue.last is queue.find(0) is queue.find(0, True) is queue.lend(0)
    assert queue.read(0, 10) == b""
    assert queue.flush(0)
    assert queue.commit(0)
    queue.truncate(0)
    assert not queue.retry_hanged(0, 0)
    assert not (tmp_path / "log").exists()


def test_files_follow_one_another(queue, tmp_path):
    fill(queue, 2500)
    assert starts(queue) == [0, 1000, 2000] == on_disk(tmp_path / "log")
    assert (queue.min_offset, queue.max_offset, queue.wrote_offset) == (0, 2500, 2500)
    assert [file.first_in_queue for file in queue.files] == [True, False, False]
    assert queue.total_size == 3000


def test_the_first_file_begins_at_a_boundary(queue):
    fill(queue, 10, start=5_000_007_123)
    assert starts(queue) == [5_000_007_000]


OFFSETS_AND_FILES = [
    pytest.param(2999, False, None, id="before the first"),
    pytest.param(2999, True, 3000, id="before the first, first wanted"),
    pytest.param(3000, False, 3000, id="first byte"),
    pytest.param(3999, False, 3000, id="last byte of a file"),
    pytest.param(4000, False, 4000, id="next file"),
    pytest.param(5999, False, 5000, id="last byte"),
    pytest.param(6000, False, None, id="behind the last"),
    pytest.param(6000, True, 3000, id="behind the last, first wanted"),
]


@pytest.mark.parametrize(("offset", "or_first", "expected"), OFFSETS_AND_FILES)
def test_finds_the_file_that_holds_an_offset(queue, offset, or_first, expected):
    fill(queue, 2500, start=3000)
    file = queue.find(offset, or_first)
    assert (file and file.start_offset) == expected


def test_finds_files_after_a_gap(disk, tmp_path):
    for start in (0, 3000, 4000):
        disk.open(tmp_path / queue_file_name(start), SIZE)
    queue = MappedFileQueue(disk, [tmp_path], SIZE)
    queue.load()
    assert queue.find(4500).start_offset == 4000
    assert queue.find(3000).start_offset == 3000
    assert queue.find(1500) is None
    assert queue.find(1500, True).start_offset == 0


def test_reads_and_lends_within_one_file(queue):
    fill(queue, 2500)
    assert queue.read(990, 100) == bytes(n % 251 for n in range(990, 1000))
    with queue.lend(2400) as view:
        assert bytes(view) == bytes(n % 251 for n in range(2400, 2500))
    assert queue.lend(2400, 101) is None


def test_loaded_files_count_as_full(queue, disk, tmp_path):
    fill(queue, 2500)
    second_queue = MappedFileQueue(disk, [tmp_path / "log"], SIZE)
    second_queue.load()
    assert starts(second_queue) == [0, 1000, 2000]
    assert all(file.wrote == file.committed == file.flushed == SIZE for file in second_queue.files)
    assert second_queue.read(2400, 100) == queue.read(2400, 100)
    assert "3 files" in repr(second_queue)
    assert second_queue.folders == (tmp_path / "log",)


def test_a_last_file_of_no_length_is_deleted(disk, tmp_path):
    disk.open(tmp_path / queue_file_name(0), SIZE)
    (tmp_path / queue_file_name(1000)).touch()
    (tmp_path / "folder").mkdir()
    queue = MappedFileQueue(disk, [tmp_path], SIZE)
    queue.load()
    assert starts(queue) == [0]
    assert not (tmp_path / queue_file_name(1000)).exists()


@pytest.mark.parametrize("size", [0, 1, 999, 1001])
def test_another_length_is_refused(disk, tmp_path, size):
    (tmp_path / queue_file_name(0)).write_bytes(bytes(size))
    disk.open(tmp_path / queue_file_name(1000), SIZE)
    with pytest.raises(WrongFileSize, match=f"1,000 bytes, found {size:,}") as refused:
        MappedFileQueue(disk, [tmp_path], SIZE).load()
    assert refused.value.file == str(tmp_path / queue_file_name(0))


def test_a_name_that_is_no_number_is_refused(disk, tmp_path):
    (tmp_path / "notes.txt").write_bytes(bytes(SIZE))
    with pytest.raises(StoreError, match="no number"):
        MappedFileQueue(disk, [tmp_path], SIZE).load()


TRUNCATED = [
    pytest.param(2600, [0, 1000, 2000], 2600, id="ahead in the last file"),
    pytest.param(2001, [0, 1000, 2000], 2001, id="in the last file"),
    pytest.param(2000, [0, 1000, 2000], 2000, id="at a boundary the file behind stays, empty"),
    pytest.param(1999, [0, 1000], 1999, id="the file behind goes"),
    pytest.param(1, [0], 1, id="all but the first go"),
    pytest.param(3000, [0, 1000, 2000], 3000, id="at the end the last file stays full"),
]


@pytest.mark.parametrize(("offset", "expected", "end"), TRUNCATED)
def test_truncates(disk, tmp_path, offset, expected, end):
    filled = MappedFileQueue(disk, [tmp_path], SIZE)
    fill(filled, 3000)
    queue = MappedFileQueue(disk, [tmp_path], SIZE)
    queue.load()
    queue.truncate(offset)
    assert starts(queue) == expected == on_disk(tmp_path)
    assert queue.max_offset == end
    last_file = queue.last
    assert last_file.wrote == last_file.committed == last_file.flushed == end - last_file.start_offset


def test_bytes_after_a_cut_stay(queue):
    fill(queue, 500)
    queue.truncate(100)
    queue.last.advance(400)
    assert queue.read(100, 400) == bytes(n % 251 for n in range(100, 500))


def test_flushes_file_after_file(queue):
    fill(queue, 2500)
    assert not queue.flush(0)
    assert queue.flushed_where == 1000
    assert queue.store_timestamp == 1000
    assert not queue.flush(4)  # a full file is flushed whatever the number of pages
    assert queue.flushed_where == 2000
    assert queue.store_timestamp == 1000  # only complete flushes set the time
    assert queue.flush(4)
    assert not queue.flush(0)
    assert (queue.flushed_where, queue.store_timestamp) == (2500, 3000)
    assert queue.flush(0)


def test_a_failed_flush_is_reported_and_moves_no_position(tmp_path):
    disk = SimulatedDisk()
    queue = MappedFileQueue(disk, [tmp_path], SIZE)
    fill(queue, 1500)
    disk.fail(errno.EIO, kind="flush", path="*1000", times=1)
    assert not queue.flush(0)
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output"):
            queue.flush(0)
    assert queue.flushed_where == 1000


def test_commits_file_after_file(disk, tmp_path):
    pool = TransientStorePool(2, SIZE)
    queue = MappedFileQueue(disk, [tmp_path], SIZE, borrow=pool.borrow)
    fill(queue, 1500)
    assert (queue.max_offset, queue.wrote_offset, pool.available) == (0, 1500, 0)
    assert not queue.commit(0)
    assert pool.available == 1
    assert not queue.commit(0)
    assert queue.commit(0)
    assert (queue.max_offset, queue.committed_where) == (1500, 1500)
    queue.close()
    assert pool.available == 2


def test_nothing_is_readable_after_an_incompletely_committed_file(disk, tmp_path):
    """Two files were rolled between two commits. Dispatch took the last file's start as the end, found the first one
    empty and skipped it as a lost file, so its messages never reached the queues.
    """
    pool = TransientStorePool(2, SIZE)
    queue = MappedFileQueue(disk, [tmp_path], SIZE, borrow=pool.borrow)
    fill(queue, 100)
    queue.commit(0)
    fill(queue, 3400)
    assert (queue.max_offset, queue.wrote_offset) == (100, 3500)
    assert [queue.commit(0) or queue.max_offset for _ in range(3)] == [1000, 3500, 3500]


def test_folders_of_a_multi_path_log_take_turns(disk, tmp_path):
    full: set[str] = set()
    folders = [tmp_path / name for name in ("c", "a", "b", "old")]
    queue = MappedFileQueue(
        disk, folders, SIZE, read_only_folders=[tmp_path / "old"], is_full=lambda path: path.name in full
    )
    fill(queue, 4000)
    assert [on_disk(tmp_path / name) for name in ("a", "b", "c")] == [[0, 3000], [1000], [2000]]
    full.add("b")
    assert queue.path_of(5000).parent.name == "c"
    assert queue.path_of(4000).parent.name == "a"
    full.update(("a", "c"))
    assert queue.path_of(4000).parent.name == "b"
    assert not (tmp_path / "old").exists()


def test_files_of_all_folders_are_sorted_by_name(disk, tmp_path):
    for folder, start in (("a", 2000), ("b", 0), ("old", 1000)):
        disk.open(tmp_path / folder / queue_file_name(start), SIZE)
    queue = MappedFileQueue(
        disk, [tmp_path / "a", tmp_path / "b"], SIZE, read_only_folders=[tmp_path / "b", tmp_path / "old"]
    )
    queue.load()
    assert starts(queue) == [0, 1000, 2000]


def test_files_may_be_made_ahead_of_need(queue):
    created_items = {}

    def allocate(start):
        return created_items.pop(start, None)

    ahead = MappedFileQueue(queue._disk, queue.folders, SIZE, allocate=allocate)
    assert ahead.last_or_create() is None
    created_items[0] = ahead.create(0)
    assert ahead.last is None
    assert ahead.last_or_create().start_offset == 0
    assert ahead.last_or_create() is ahead.last
    ahead.last.append(bytes(SIZE))
    assert ahead.last_or_create() is None
    created_items[1000] = ahead.create(1000)
    assert ahead.last_or_create().start_offset == 1000


def test_a_new_file_is_prepared(disk, tmp_path):
    prepared = []
    queue = MappedFileQueue(disk, [tmp_path], SIZE, prepare=lambda file: prepared.append(file.path))
    queue.last_or_create()
    assert prepared == [str(tmp_path / queue_file_name(0))]


def test_the_oldest_files_are_deleted_while_they_are_due_and_never_the_last(queue, tmp_path):
    fill(queue, 4500)
    pauses = []
    delete_oldest = queue.delete_oldest(
        lambda file: file.start_offset < 3000, force_after_ms=10, now=0, max_count=2, pause=lambda: pauses.append(1)
    )
    assert [file.start_offset for file in delete_oldest] == [0, 1000]
    assert len(pauses) == 1
    assert starts(queue) == [2000, 3000, 4000] == on_disk(tmp_path / "log")
    assert len(queue.delete_oldest(lambda _: True, force_after_ms=10, now=0)) == 2
    assert (starts(queue), queue.min_offset) == ([4000], 4000)


def test_the_readable_range_begins_after_files_being_deleted(queue):
    fill(queue, 4500)
    least = []
    queue.delete_oldest(
        lambda _: True, force_after_ms=10, now=0, max_count=3, pause=lambda: least.append(queue.readable_min)
    )
    assert least == [1000, 2000], "the files are forgotten together, at the end"
    assert queue.readable_min == queue.min_offset == 3000
    queue.shutdown(0, 0)
    assert queue.readable_min == 3000, "of a store that is closed"


def test_a_file_deleted_before_its_flush_blocks_nothing(queue):
    fill(queue, 2500)
    queue.delete_oldest(lambda _: True, force_after_ms=10, now=0)
    assert (queue.min_offset, queue.flushed_where) == (2000, 0)
    assert queue.flush(0) is False
    assert queue.flushed_where == 2500
    assert queue.commit(0) is False
    assert queue.committed_where == 2500


def test_a_file_being_read_stops_the_deletion_until_it_is_forced(queue):
    fill(queue, 2500)
    lent = queue.lend(0)
    assert queue.delete_oldest(lambda _: True, force_after_ms=100, now=0) == []
    assert starts(queue) == [0, 1000, 2000]
    assert queue.total_size == 2000
    assert not queue.retry_hanged(100, now=99)
    assert queue.retry_hanged(100, now=100)
    assert not queue.retry_hanged(100, now=300)
    assert starts(queue) == [1000, 2000]
    assert bytes(lent.view[:3]) == b"\0\1\2"
    lent.release()


def test_the_age_of_a_file_is_its_time_of_writing(queue, disk):
    fill(queue, 10)
    disk.set_modified(Path(queue.first.path), 12345)
    assert queue.modified(queue.first) == 12345


def test_after_shutdown_nothing_is_lent(queue):
    fill(queue, 10)
    queue.shutdown(1000, 0)
    assert queue.lend(0) is None


def test_destroying_leaves_no_files(queue, tmp_path):
    fill(queue, 2500)
    queue.flush(0)
    queue.destroy()
    assert not (tmp_path / "log").exists()
    assert (queue.files, queue.flushed_where, queue.max_offset) == ([], 0, 0)
    fill(queue, 10, start=3000)
    assert starts(queue) == [3000]
