"""The cached histogram: outside of the store, used only while files are unchanged, and continued where they grew."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from counted_histogram import compare, counted

from engine.inspection import open_store
from engine.inspection.histogram import log_histogram as module
from engine.inspection.histogram.log_histogram import read_histogram

Golden = Callable[[str], Path]


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The offsets at which walks began."""
    starts: list[int] = []
    actual = module.scan_log

    def noted(log, start=None, *args, **kwargs):
        starts.append(start)
        return actual(log, start, *args, **kwargs)

    monkeypatch.setattr(module, "scan_log", noted)
    return starts


def test_a_second_run_walks_only_from_the_end_and_agrees(golden: Golden, tmp_path: Path, walked: list[int]) -> None:
    with open_store(golden("clean-5.3.3")) as store:
        first = read_histogram(store.log, cache=tmp_path).bins.table()
        files = len(store.log.files)
        assert len(walked) == files
        second = read_histogram(store.log, cache=tmp_path)
        assert second.bins.table() == first
        assert walked[files:] == [second.looked_to]
        assert list(store.path.rglob("*.times")) == []
    assert len(list(tmp_path.glob("*.times"))) == 1


def test_a_changed_file_is_walked_again(golden: Golden, tmp_path: Path) -> None:
    copy = tmp_path / "store"
    shutil.copytree(golden("clean-5.3.3"), copy)
    with open_store(copy) as store:
        before = read_histogram(store.log, cache=tmp_path / "cache")
    log = sorted((copy / "commitlog").iterdir())[0]
    log.chmod(0o644)
    with log.open("r+b") as file:
        file.seek(200)
        file.write(bytes(64))
    with open_store(copy) as store:
        after = read_histogram(store.log, cache=tmp_path / "cache")
        compare(after.bins.table(), counted(store.units(crc=False), after.bins.width))
    assert before.damaged == 0 < after.damaged


def test_a_log_that_grew_is_walked_from_its_old_end(golden: Golden, tmp_path: Path, walked: list[int]) -> None:
    """The log is cut in its last file; then the bytes come back, as if a broker had written them."""
    copy = tmp_path / "store"
    shutil.copytree(golden("clean-5.3.3"), copy)
    log = sorted((copy / "commitlog").iterdir())[-1]
    log.chmod(0o644)
    with open_store(golden("clean-5.3.3")) as store:
        offsets = [item.offset for item in store.units(crc=False) if hasattr(item, "topic")]
        base = store.log.files[-1].start_offset
        cut = next(offset for offset in offsets if offset > (base + offsets[-1]) // 2) - base
    content = log.read_bytes()
    log.write_bytes(content[:cut] + bytes(len(content) - cut))
    with open_store(copy) as store:
        shorter = read_histogram(store.log, cache=tmp_path / "cache")
    log.write_bytes(content)
    walked.clear()
    with open_store(copy) as store:
        grown = read_histogram(store.log, cache=tmp_path / "cache")
        assert walked[-1] == base + cut
        compare(grown.bins.table(), counted(store.units(crc=False), grown.bins.width))
    assert grown.units > shorter.units > 0


def test_a_log_whose_end_was_replaced_is_walked_again(golden: Golden, tmp_path: Path) -> None:
    copy = tmp_path / "store"
    shutil.copytree(golden("clean-5.3.3"), copy)
    with open_store(copy) as store:
        full = read_histogram(store.log, cache=tmp_path / "cache")
        last = [item for item in store.units(crc=False) if hasattr(item, "topic")][-1]
        base = store.log.files[-1].start_offset
    log = sorted((copy / "commitlog").iterdir())[-1]
    log.chmod(0o644)
    with log.open("r+b") as file:
        file.seek(last.offset - base)
        file.write(bytes(last.size))
    with open_store(copy) as store:
        shorter = read_histogram(store.log, cache=tmp_path / "cache")
        compare(shorter.bins.table(), counted(store.units(crc=False), shorter.bins.width))
    assert shorter.units == full.units - 1


def test_an_invalid_cache_is_no_harm(golden: Golden, tmp_path: Path) -> None:
    with open_store(golden("clean-5.3.3")) as store:
        table = read_histogram(store.log, cache=tmp_path).bins.table()
        (file,) = tmp_path.glob("*.times")
        content = file.read_bytes()
        for invalid in (b"", b"\xff" * 100, content[: len(content) // 2], content.replace(b'"width"', b'"wodth"')):
            file.write_bytes(invalid)
            assert read_histogram(store.log, cache=tmp_path).bins.table() == table
        blocked = tmp_path / "file"
        blocked.write_text("no folder")
        assert read_histogram(store.log, cache=blocked).bins.table() == table
