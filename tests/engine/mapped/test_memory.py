"""Warm-up and memory lock make things faster, or say why not, and never stop anything."""

from __future__ import annotations

import ctypes
import logging
import mmap
import os
import random
import resource
import subprocess
import sys

import pytest
from simulated_disk import SimulatedDisk

from engine.mapped import memory
from engine.mapped.disk import RealDisk
from engine.mapped.memory import (
    PageMap,
    ResidencyUnknown,
    TransientStorePool,
    advise,
    is_answer_true,
    lock_memory,
    page_map,
    warm,
)


def test_locks_pages():
    memory = memoryview(mmap.mmap(-1, 8192))
    permitted = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] != 0
    assert lock_memory(memory, "a page") == permitted


def test_without_the_rights_a_warning_says_so(monkeypatch, caplog):
    class Refusing:
        def mlock(self, *_):
            ctypes.set_errno(1)
            return -1

    class Without:
        pass

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Refusing())
    with caplog.at_level(logging.WARNING):
        assert not lock_memory(memoryview(bytearray(10)), "the newest file")
        monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Without())
        assert not lock_memory(memoryview(bytearray(10)), "the newest file")
    assert [record.getMessage() for record in caplog.records] == [
        "the newest file: mlock failed: Operation not permitted",
        "the newest file: mlock is not to be had here: 'Without' object has no attribute 'mlock'",
    ]


def test_memory_that_may_not_be_written_is_not_locked(caplog):
    assert not lock_memory(memoryview(bytes(10)), "some bytes")
    assert "some bytes: mlock is not to be had here" in caplog.text


def test_warming_up_gives_a_file_all_its_blocks_and_leaves_zeros(tmp_path):
    disk = RealDisk()
    file = disk.open(tmp_path / "f", 1 << 20)
    warm(file)
    assert (tmp_path / "f").stat().st_blocks * 512 >= 1 << 20
    assert not any(file.read(0, 1 << 20))
    disk.close()


@pytest.mark.parametrize(("pages", "flushes"), [(0, 0), (2, 4), (4096, 1)])
def test_warming_up_is_synced_every_so_many_pages(tmp_path, pages, flushes):
    kinds = []
    disk = SimulatedDisk(on_call=lambda _, kind, __: kinds.append(kind))
    warm(disk.open(tmp_path / "f", 7 * 4096 + 5), sync_pages=pages)
    assert kinds.count("flush") - (flushes > 0) == flushes  # the first flush has the name as its second step
    assert disk.after_power_loss(random.Random(1)).names(tmp_path) in ([], [("f", 7 * 4096 + 5)])


# Buffers lent and given back (docs/formats/files.md#allocation).


def test_lends_each_buffer_once():
    pool = TransientStorePool(2, 8192)
    first, second = pool.borrow(), pool.borrow()
    assert pool.borrow() is None
    first.view[0:3] = b"abc"
    assert bytes(second.view[0:3]) == bytes(3)
    assert len(second.view) == 8192
    first.give_back()
    first.give_back()
    assert pool.available == 1
    assert pool.borrow() is first


def test_locks_its_buffers_where_it_may_and_goes_on_where_it_may_not(monkeypatch):
    asked = []
    monkeypatch.setattr("engine.mapped.memory.lock_memory", lambda view, what: asked.append((len(view), what)))
    assert TransientStorePool(3, 4096, lock=True).available == 3
    assert asked == [(4096, "a buffer of the transient store pool")] * 3


# Pages in memory: asked for without touching one, honest where the system does not tell.

PAGE = mmap.PAGESIZE


def _evicted(path):
    """Whether the system let go of the file's pages; some file systems keep them."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return page_map(str(path)).resident == 0


def test_what_was_just_written_is_in_memory(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * (10 * PAGE + 5))
    found = page_map(str(path))
    assert len(found.flags) == 11
    assert found.resident == found.size == 10 * PAGE + 5
    assert found.shares(5) == (1.0,) * 5


def test_asking_brings_no_page_into_memory(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * (64 * PAGE))
    if _evicted(path):
        assert page_map(str(path)).resident == 0
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            file.seek(8 * PAGE)
            os.pread(file.fileno(), 1, 8 * PAGE)
        assert page_map(str(path)).flags[8]


def test_shares_are_of_equal_stretches():
    found = PageMap(8 * PAGE, PAGE, bytes([1, 1, 0, 0, 1, 0, 0, 0]))
    assert found.shares(4) == (1.0, 0.0, 0.5, 0.0)
    assert found.shares(100) == (1, 1, 0, 0, 1, 0, 0, 0)
    assert found.resident == 3 * PAGE


def test_an_empty_file_has_no_pages(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"")
    assert page_map(str(path)).shares(4) == ()
    assert page_map(str(path)).resident == 0


def test_a_file_that_shrinks_while_it_is_asked_about_does_no_harm(tmp_path, monkeypatch):
    """A touched page behind the end of a mapped file would kill the process; asking does not touch."""
    path = tmp_path / "file"
    path.write_bytes(b"x" * (64 * PAGE))
    system = memory._system()

    class Shrinking:
        mmap, munmap = system.mmap, system.munmap

        @staticmethod
        def mincore(*what):
            os.truncate(path, 0)
            return system.mincore(*what)

    monkeypatch.setattr(memory, "_system", Shrinking)
    found = page_map(str(path))
    assert found.size == 64 * PAGE


def test_pieces_of_a_large_file_are_put_together(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "PIECE_BYTES", 4 * PAGE)
    path = tmp_path / "file"
    path.write_bytes(b"x" * (10 * PAGE))
    assert page_map(str(path)).resident == 10 * PAGE


def test_a_system_without_mincore_says_so(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"x")
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda *_args, **_more: object())
    with pytest.raises(ResidencyUnknown, match="no mincore"):
        page_map(str(tmp_path / "file"))


def test_others_are_not_told_and_hear_it(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"x")
    monkeypatch.setattr(memory, "is_answer_true", lambda *_: False)
    with pytest.raises(ResidencyUnknown, match="owner"):
        page_map(str(tmp_path / "file"))
    monkeypatch.undo()
    assert is_answer_true(os.geteuid(), str(tmp_path / "file"))


def test_a_refusal_is_a_reason(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"x")
    system = memory._system()

    class Refusing:
        mmap, munmap = system.mmap, system.munmap
        mincore = staticmethod(lambda *_: -1)

    monkeypatch.setattr(memory, "_system", Refusing)
    with pytest.raises(ResidencyUnknown, match="mincore:"):
        page_map(str(tmp_path / "file"))


def test_a_file_that_cannot_be_mapped_is_a_reason(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"x")

    class Full:
        mmap = staticmethod(lambda *_: None)

    monkeypatch.setattr(memory, "_system", Full)
    with pytest.raises(ResidencyUnknown, match="cannot be mapped"):
        page_map(str(tmp_path / "file"))


def test_no_numpy_is_loaded_for_it():
    code = "import sys, engine.mapped.memory; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_system_is_told_how_a_map_will_be_read(caplog: pytest.LogCaptureFixture) -> None:
    view = memoryview(mmap.mmap(-1, 2 * mmap.PAGESIZE))
    assert advise(view, 1, "a map")
    assert caplog.records == []
    assert not advise(view, 12_345, "a map")
    assert "a map: madvise failed" in caplog.text
