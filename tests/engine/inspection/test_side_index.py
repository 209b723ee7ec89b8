"""The side index counts like the walk, is stored outside the store, and is used only while the files are unchanged."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from handmade_stores import LOG_SIZE, healthy

from engine.codec.unit_scan import Stop
from engine.inspection import open_store
from engine.inspection import side_index as module
from engine.inspection.side_index import SideIndex
from engine.mapped.reading import SystemDisk

Golden = Callable[[str], Path]
STORES = ["clean-5.3.3", "crash-flip-5.3.3", "crash-4.9.8", "first-files-deleted-5.3.3", "broker-orders"]


@pytest.fixture(autouse=True)
def few_rows_between_anchors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS_PER_ANCHOR", 64)


@pytest.mark.parametrize("name", STORES)
def test_row_numbers_are_those_of_the_walk(golden: Golden, tmp_path: Path, name: str) -> None:
    with open_store(golden(name)) as store:
        rows = [item.offset for item in store.units(crc=False) if not isinstance(item, Stop)]
        index = SideIndex(store.log, tmp_path)
        assert index.build()
        assert index.total == len(rows)
        for number in {0, 1, 63, 64, 65, len(rows) // 2, len(rows) - 1}:
            assert index.offset_of(number) == rows[number]
            assert index.number_at(rows[number]) == number
        assert index.offset_of(len(rows)) is None


def test_a_second_index_comes_from_the_cache_and_agrees(golden: Golden, tmp_path: Path) -> None:
    with open_store(golden("clean-5.3.3")) as store:
        built_index = SideIndex(store.log, tmp_path)
        built_index.build()
        cached_index = SideIndex(store.log, tmp_path)
        cached_index.build()
    assert [s.rows for s in cached_index.segments] == [s.rows for s in built_index.segments]
    assert cached_index.segments[0].topics == built_index.segments[0].topics
    assert len(list(tmp_path.glob("*.idx"))) == 1


def test_a_changed_file_is_counted_again(golden: Golden, tmp_path: Path) -> None:
    copy = tmp_path / "store"
    shutil.copytree(golden("clean-5.3.3"), copy)
    with open_store(copy) as store:
        index = SideIndex(store.log, tmp_path / "cache")
        index.build()
        total_before = index.total
    log = sorted((copy / "commitlog").iterdir())[0]
    log.chmod(0o644)
    with log.open("r+b") as file:
        file.seek(200)
        file.write(bytes(64))
    with open_store(copy) as store:
        index = SideIndex(store.log, tmp_path / "cache")
        index.build()
        rows = sum(1 for item in store.units(crc=False) if not isinstance(item, Stop))
        assert index.total == rows
        assert index.segments[0].damages
    assert total_before == rows  # one unit became one span of damage


def test_an_invalid_cache_is_rebuilt(golden: Golden, tmp_path: Path) -> None:
    with open_store(golden("clean-5.3.3")) as store:
        index = SideIndex(store.log, tmp_path)
        index.build()
        for file in tmp_path.glob("*.idx"):
            file.write_bytes(b"\xff" * 100)
        second_index = SideIndex(store.log, tmp_path)
        assert second_index.build()
        assert second_index.total == index.total


def test_a_stopped_build_continues_later(golden: Golden, tmp_path: Path) -> None:
    with open_store(golden("first-files-deleted-5.3.3")) as store:
        index = SideIndex(store.log, tmp_path)
        calls = iter([False, False, True])
        assert not index.build(lambda: next(calls, True))
        assert not index.complete
        assert index.build()
        assert index.total == sum(1 for item in store.units(crc=False) if not isinstance(item, Stop))


def test_rows_after_an_unreadable_file_are_counted_and_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The window counted "1,202 rows up to 1,048,576" of a log that continued after the unreadable file."""
    root = healthy().write(tmp_path / "store")
    opened, unreadable = SystemDisk.open, str(root / "commitlog" / f"{LOG_SIZE:020d}")

    def refuse(self: SystemDisk, path: str) -> int:
        if path == unreadable:
            raise OSError(errno.EACCES, "Permission denied", path)
        return opened(self, path)

    with monkeypatch.context() as patched:
        patched.setattr(SystemDisk, "open", refuse)
        with open_store(root) as store:
            built = SideIndex(store.log, tmp_path)
            built.build()
            loaded = SideIndex(store.log, tmp_path)
            assert loaded.load()
            assert [(s.name, s.rows, s.end) for s in loaded.segments] == [
                (s.name, s.rows, s.end) for s in built.segments
            ]
            assert loaded.end > 2 * LOG_SIZE
            assert not any(segment.damages for segment in loaded.segments), "what cannot be read is not damaged"
    with open_store(root) as store:
        readable = SideIndex(store.log, tmp_path)
        assert not readable.load(), "the file can be read again: its one row was not all of it"
        readable.build()
        assert readable.total > built.total
