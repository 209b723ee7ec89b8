"""Finished log files are counted once, as long as they stay the same files."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace

import golden_stores
import pytest

from engine.inspection import open_store
from engine.inspection.space import log as space_log
from engine.inspection.space.account import Space, space_of

MANY = [name for name in golden_stores.names() if name]


@pytest.fixture
def several(golden, tmp_path):
    """A store of several log files that may be changed."""
    for name in MANY:
        actual_golden = golden(name)
        root = actual_golden / "store" if (actual_golden / "store").is_dir() else actual_golden
        if len(list((root / "commitlog").glob("0*"))) >= 3:
            return shutil.copytree(root, tmp_path / "store")
    pytest.fail("no golden store has three log files")


@pytest.fixture
def walked(monkeypatch) -> list[str]:
    """Return the list that receives the names of walked files."""
    names: list[str] = []
    walk_file = space_log._Walk.file

    def file(self, log, log_file, *arguments):
        names.append(log_file.name)
        return walk_file(self, log, log_file, *arguments)

    monkeypatch.setattr(space_log._Walk, "file", file)
    return names


def count(root, cache) -> Space:
    with open_store(root) as store:
        space = space_of(store, cache=cache)
    return replace(space, at=0, took_ms=0)


def test_a_second_count_walks_only_the_last_file_and_agrees(several, tmp_path, walked) -> None:
    plain = count(several, None)
    files = list(walked)
    assert len(files) >= 3
    assert count(several, tmp_path / "cache") == plain
    walked.clear()
    assert count(several, tmp_path / "cache") == plain
    assert plain.equal
    with open_store(several) as store:
        names = [file.name for file in store.log.files if file.end_offset <= store.log.max_offset][:-1]
    assert names
    assert set(files) - set(walked) >= set(names) - {files[-1]}
    assert files[-1] in walked


def test_a_file_with_another_time_length_or_head_is_counted_again(several, tmp_path, walked) -> None:
    cache = tmp_path / "cache"
    first_file = sorted((several / "commitlog").iterdir())[0]
    plain = count(several, cache)
    os.utime(first_file, ns=(1, 1))
    walked.clear()
    assert count(several, cache) == plain
    assert walked[0] == first_file.name
    walked.clear()
    count(several, cache)
    assert first_file.name not in walked
    status = first_file.stat()
    with first_file.open("r+b") as file:
        file.seek(4)
        file.write(b"\0\0\0\0")
    os.utime(first_file, ns=(status.st_atime_ns, status.st_mtime_ns))
    walked.clear()
    damaged = count(several, cache)
    assert walked[0] == first_file.name
    assert damaged != plain
    assert damaged.equal


def test_a_cache_that_cannot_be_read_or_written_changes_nothing(several, tmp_path, walked) -> None:
    cache = tmp_path / "cache"
    plain = count(several, cache)
    (file,) = cache.glob("*.space")
    for text in ("", "no json", '{"format": 0}', file.read_text("utf-8")[:200], '{"format": 1}\n{"name": "x"}'):
        file.write_text(text, "utf-8")
        assert count(several, cache) == plain
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert count(several, blocked) == plain


def test_a_stopped_count_continues_where_it_was(several, tmp_path, walked) -> None:
    request = iter([False] * 2 + [True] * 1000)
    with open_store(several) as store:
        cut = space_of(store, cancelled=lambda: next(request), cache=tmp_path / "cache")
    assert cut.method == "cut"
    assert count(several, tmp_path / "cache") == count(several, None)
