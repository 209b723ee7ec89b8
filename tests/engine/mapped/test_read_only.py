"""Read-only files: another inode is another file, and read errors are never forgotten."""

from __future__ import annotations

import os

import pytest
from failing_reads import FailingDisk

from engine.errors import CannotRead
from engine.mapped.read_only import DescriptorCache, FileSequence, LoneFile, stripe_count
from engine.mapped.reading import Reading, Unread, gather_unread, read_through

NAMES = [f"{start:020d}" for start in (0, 100, 200)]


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "queue"
    path.mkdir()
    for number, name in enumerate(NAMES):
        (path / name).write_bytes(bytes([97 + number]) * 100)
    return path


def replaced(path, data):
    """Replace the file under this name at once, as a rename does."""
    beside = path.with_name("beside")
    beside.write_bytes(data)
    beside.replace(path)


def sequence_at(folder):
    return FileSequence([folder], DescriptorCache())


def test_a_file_of_the_same_name_and_length_is_another_file(folder):
    """A deleted and recreated topic has the same names and lengths. Its old bytes were shown forever, because a file
    was forgotten only if its path was new or its length smaller.
    """
    sequence = sequence_at(folder)
    assert sequence.read(0, 4) == b"aaaa"
    replaced(folder / NAMES[0], b"z" * 100)
    assert sequence.refresh()
    assert sequence.read(0, 4) == b"zzzz"
    assert not sequence.refresh()


def test_a_recreated_folder_is_read_again(folder):
    sequence = sequence_at(folder)
    assert sequence.read(150, 4) == b"bbbb"
    folder.rename(folder.with_name("old"))
    folder.mkdir()
    for name in NAMES:
        (folder / name).write_bytes(b"n" * 100)
    assert sequence.refresh()
    assert sequence.read(150, 4) == b"nnnn"


def test_a_single_opened_file_can_be_replaced_too(folder):
    lone = LoneFile(folder / NAMES[1], 100, DescriptorCache())
    assert lone.read(100, 2) == b"bb"
    replaced(folder / NAMES[1], b"q" * 100)
    assert lone.refresh()
    assert lone.read(100, 2) == b"qq"


def test_a_replaced_file_is_never_read_as_the_old_one(folder):
    """The length and position of the old file with the bytes of the new one would be a store that never existed."""
    sequence = sequence_at(folder)
    replaced(folder / NAMES[0], b"z" * 100)
    with pytest.raises(CannotRead, match="another file has taken its name"):
        sequence.read(0, 4)
    assert sequence.refresh()
    assert sequence.read(0, 4) == b"zzzz"


def test_descriptors_of_deleted_files_are_closed(folder):
    sequence = sequence_at(folder)
    assert sequence.read(0, 1) == b"a"
    open_before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    (folder / NAMES[0]).unlink()
    assert sequence.refresh()
    assert len(os.listdir("/proc/self/fd")) == open_before - 1  # noqa: PTH208


def test_a_read_error_is_recorded_even_if_a_caller_catches_it(folder):
    with read_through(FailingDisk(folder, "open", 0, "EACCES")):
        sequence = sequence_at(folder)
    reading = sequence._cache.reading
    with pytest.raises(CannotRead):
        sequence.read(0, 1)
    assert reading.unread == (Unread(str(folder / NAMES[0]), "Permission denied", "open"),)
    assert sequence.read(100, 1) == b"b"
    with pytest.raises(CannotRead, match="no plan"):
        reading.refuse("no plan")


@pytest.mark.parametrize("how", ["EACCES", "EIO", "ESTALE", "vanish"])
@pytest.mark.parametrize("call", ["entry_status", "entries"])
def test_an_unreadable_folder_is_not_empty(call, how, folder):
    if (call, how) == ("entries", "vanish"):
        return  # a folder that was never listed is simply absent
    with read_through(FailingDisk(folder, call, 0, how)):
        sequence = sequence_at(folder)
    with pytest.raises(CannotRead):
        sequence.require_complete()
    assert sequence._cache.reading.unread


def test_an_absent_folder_is_no_error(tmp_path):
    sequence = sequence_at(tmp_path / "none")
    sequence.require_complete()
    assert sequence.files == []
    assert sequence._cache.reading.unread == ()


@pytest.mark.parametrize("size", [10, 70_000])
def test_a_read_that_is_cut_short_is_no_end_of_the_file(size, tmp_path):
    path = tmp_path / NAMES[0]
    path.write_bytes(b"x" * 100_000)
    with read_through(FailingDisk(tmp_path, "read", 0, "short")):
        sequence = sequence_at(tmp_path)
    with pytest.raises(CannotRead, match="cut short"):
        sequence.read(0, size)


def test_a_shortened_file_is_reported_and_read_to_its_end(folder):
    sequence = sequence_at(folder)
    os.truncate(folder / NAMES[0], 40)
    assert sequence.read(0, 100) == b"a" * 40
    (noted,) = sequence._cache.reading.unread
    assert "became shorter" in noted.error


def test_reading_over_the_end_is_no_fault(folder):
    sequence = sequence_at(folder)
    view = memoryview(bytearray(500))
    assert sequence.files[2].read(90, 500) == b"c" * 10
    assert sequence.files[2].read_into(view, 90) == 10
    assert sequence._cache.reading.unread == ()


def test_errors_of_readers_created_inside_are_collected(folder):
    (folder / "gone").symlink_to(folder / "nowhere")
    with gather_unread() as results:
        reading = Reading()
    with pytest.raises(CannotRead):
        reading.open(folder / "never")
    with gather_unread():
        pass
    assert [item.action for item in results] == ["open"]


def test_a_link_to_nothing_may_lead_to_a_disk_that_is_not_mounted(folder):
    (folder / f"{300:020d}").symlink_to(folder / "nowhere")
    sequence = sequence_at(folder)
    assert len(sequence.files) == 3
    assert [odd.kind for odd in sequence.oddities] == ["link"]
    with pytest.raises(CannotRead):
        sequence.require_complete()


def test_a_folder_that_is_a_link_to_nothing_is_not_absent(tmp_path):
    (tmp_path / "queue").symlink_to(tmp_path / "not mounted")
    reading = Reading()
    for ask in (reading.entries, reading.status, lambda path: reading.open(path, listed=False)):
        with pytest.raises(CannotRead):
            ask(tmp_path / "queue")
    assert reading.status(tmp_path / "nothing") is None


@pytest.mark.parametrize(
    ("starts", "count"),
    [([], 0), ([0], 0), ([0, 100, 200], 1), ([0, 200, 400], 2), ([100, 300], 2), ([0, 100, 300], 0), ([0, 150], 0)],
)
def test_the_step_between_files_tells_a_log_in_several_folders(starts, count):
    assert stripe_count(starts, 100) == count
    assert stripe_count(starts, 0) == 0
