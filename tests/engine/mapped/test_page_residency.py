"""The pages of a file that the system has in memory (``mincore``), determined without touching a page."""

from __future__ import annotations

import mmap
import os

import pytest

from engine.mapped import page_residency
from engine.mapped.page_residency import PageMap, ResidencyUnknown, is_answer_true, page_map

# Pages in memory, without touching one, and a reason where the system gives no answer.

PAGE = mmap.PAGESIZE


def _evicted(path):
    """Return True if the system evicted the file's pages; some file systems keep them."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return page_map(str(path)).resident == 0


def test_written_pages_are_in_memory(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * (10 * PAGE + 5))
    actual_page_map = page_map(str(path))
    assert len(actual_page_map.flags) == 11
    assert actual_page_map.resident == actual_page_map.size == 10 * PAGE + 5
    assert actual_page_map.shares(5) == (1.0,) * 5


def test_the_query_brings_no_page_into_memory(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * (64 * PAGE))
    if _evicted(path):
        assert page_map(str(path)).resident == 0
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            file.seek(8 * PAGE)
            os.pread(file.fileno(), 1, 8 * PAGE)
        assert page_map(str(path)).flags[8]


def test_ranges_without_a_page_are_told_by_one_call(tmp_path, monkeypatch):
    """The picture of a sparse TiB asked about 268 million pages one by one. That took two seconds of a processor."""
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(5 * page_residency.PIECE_BYTES + 3 * PAGE)
        file.seek(2 * page_residency.PIECE_BYTES + 7 * PAGE)
        file.write(b"x" * PAGE)
    actual_page_map = page_map(str(path))
    monkeypatch.setattr(page_residency, "_has_no_page", lambda *_arguments: False)
    assert actual_page_map == page_map(str(path))
    assert actual_page_map.resident >= PAGE


def test_shares_are_of_equal_ranges():
    actual_page_map = PageMap(8 * PAGE, PAGE, bytes([1, 1, 0, 0, 1, 0, 0, 0]))
    assert actual_page_map.shares(4) == (1.0, 0.0, 0.5, 0.0)
    assert actual_page_map.shares(100) == (1, 1, 0, 0, 1, 0, 0, 0)
    assert actual_page_map.resident == 3 * PAGE


def test_an_empty_file_has_no_pages(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"")
    assert page_map(str(path)).shares(4) == ()
    assert page_map(str(path)).resident == 0


def test_a_file_may_shrink_during_the_query(tmp_path, monkeypatch):
    """Touching a page after the end of a mapped file would kill the process, but mincore does not touch it."""
    path = tmp_path / "file"
    path.write_bytes(b"x" * (64 * PAGE))
    system = page_residency._library()

    class ShrinkingFile:
        mmap, munmap, syscall = system.mmap, system.munmap, system.syscall

        @staticmethod
        def mincore(*arguments):
            os.truncate(path, 0)
            return system.mincore(*arguments)

    monkeypatch.setattr(page_residency, "_library", ShrinkingFile)
    actual_page_map = page_map(str(path))
    assert actual_page_map.size == 64 * PAGE


def test_pieces_of_a_large_file_are_put_together(tmp_path, monkeypatch):
    monkeypatch.setattr(page_residency, "PIECE_BYTES", 4 * PAGE)
    path = tmp_path / "file"
    path.write_bytes(b"x" * (10 * PAGE))
    assert page_map(str(path)).resident == 10 * PAGE


def test_other_users_get_a_reason_instead(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"x")
    monkeypatch.setattr(page_residency, "is_answer_true", lambda *_: False)
    with pytest.raises(ResidencyUnknown, match="owner"):
        page_map(str(tmp_path / "file"))
    monkeypatch.undo()
    assert is_answer_true(os.geteuid(), str(tmp_path / "file"))


def test_a_refusal_is_a_reason(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"x")
    system = page_residency._library()

    class RefusingSystem:
        mmap, munmap, syscall = system.mmap, system.munmap, system.syscall
        mincore = staticmethod(lambda *_: -1)

    monkeypatch.setattr(page_residency, "_library", RefusingSystem)
    with pytest.raises(ResidencyUnknown, match="mincore:"):
        page_map(str(tmp_path / "file"))


def test_a_file_that_cannot_be_mapped_is_a_reason(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"x")

    class UnmappableFile:
        @staticmethod
        def syscall(*_arguments):
            return -1

        mmap = staticmethod(lambda *_: None)

    monkeypatch.setattr(page_residency, "_library", UnmappableFile)
    with pytest.raises(ResidencyUnknown, match="cannot be mapped"):
        page_map(str(tmp_path / "file"))
