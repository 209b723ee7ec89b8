"""Cache files of logs: one for each log, within a limit, and the stamp of a log file."""

from __future__ import annotations

import os
from pathlib import Path

from handmade_stores import healthy

from engine.inspection import open_store
from engine.inspection.log_cache import LogCacheFile, stamp_of


def test_each_log_and_context_has_a_file_of_its_own(tmp_path: Path) -> None:
    paths = set()
    for name in ("first", "second"):
        with open_store(healthy().write(tmp_path / name)) as store:
            paths |= {LogCacheFile.of(store.log, tmp_path, ".idx", 100, *zone).path for zone in ((), (), ("UTC",))}
    assert len(paths) == 4
    assert {path.parent for path in paths} == {tmp_path}


def test_the_files_that_were_not_used_for_longest_are_deleted_beyond_the_limit(tmp_path: Path) -> None:
    for number, name in enumerate(("old.idx", "middle.idx", "old.times")):
        (tmp_path / name).write_bytes(bytes(60))
        os.utime(tmp_path / name, (number, number))
    LogCacheFile(tmp_path / "new.idx", 120).write(bytes(60))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["middle.idx", "new.idx", "old.times"]
    LogCacheFile(tmp_path / "huge.idx", 120).write(bytes(500))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["huge.idx", "old.times"]
    assert LogCacheFile(tmp_path / "huge.idx", 120).read() == bytes(500)


def test_a_place_that_takes_no_file_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    LogCacheFile(tmp_path / "file" / "x.idx", 120).write(b"x")
    assert (tmp_path / "file").read_bytes() == b""


def test_a_stamp_changes_with_the_file(tmp_path: Path) -> None:
    root = healthy().write(tmp_path / "store")
    with open_store(root) as store:
        file = store.log.files[0]
        before = stamp_of(file)
        assert stamp_of(file) == before
        path = Path(file.path)
    os.utime(path, ns=(1, 1))
    with open_store(root) as store:
        changed = stamp_of(store.log.files[0])
    assert (changed[0], changed[1]) == (1, before[1])
