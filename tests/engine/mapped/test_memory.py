"""Warm-up and memory locks make access faster, or report why not, and never fail."""

from __future__ import annotations

import ctypes
import logging
import mmap
import random
import resource
import subprocess
import sys

import pytest
from simulated_disk import SimulatedDisk

from engine.mapped import memory
from engine.mapped.disk import RealDisk
from engine.mapped.memory import advise, lock_memory, warm
from engine.mapped.page_residency import ResidencyUnknown, page_map


def test_locks_pages():
    memory = memoryview(mmap.mmap(-1, 8192))
    permitted = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] != 0
    assert lock_memory(memory, "a page") == permitted


def test_missing_permissions_cause_a_warning(monkeypatch, caplog):
    class RefusingSystem:
        def mlock(self, *_):
            ctypes.set_errno(1)
            return -1

    class SystemWithoutMlock:
        pass

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: RefusingSystem())
    with caplog.at_level(logging.WARNING):
        assert not lock_memory(memoryview(bytearray(10)), "the newest file")
        monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: SystemWithoutMlock())
        assert not lock_memory(memoryview(bytearray(10)), "the newest file")
    assert [record.getMessage() for record in caplog.records] == [
        "the newest file: mlock failed: Operation not permitted",
        "the newest file: mlock is not available here: 'SystemWithoutMlock' object has no attribute 'mlock'",
    ]


def test_memory_that_may_not_be_written_is_not_locked(caplog):
    assert not lock_memory(memoryview(bytes(10)), "some bytes")
    assert "some bytes: mlock is not available here" in caplog.text


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
    assert kinds.count("flush") - (flushes > 0) == flushes  # the first flush also syncs the name
    assert disk.after_power_loss(random.Random(1)).names(tmp_path) in ([], [("f", 7 * 4096 + 5)])


def test_a_system_without_mincore_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"x")
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda *_args, **_keywords: object())
    with pytest.raises(ResidencyUnknown, match="no mincore"):
        page_map(str(tmp_path / "file"))


def test_no_numpy_is_loaded_for_it():
    code = "import sys, engine.mapped.memory; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_access_pattern_of_a_map_is_advised(caplog: pytest.LogCaptureFixture) -> None:
    view = memoryview(mmap.mmap(-1, 2 * mmap.PAGESIZE))
    assert advise(view, 1, "a map")
    assert caplog.records == []
    assert not advise(view, 12_345, "a map")
    assert "a map: madvise failed" in caplog.text
