"""The histogram of a log: over damage and unread files, under a filter, in a short time, stopped, from the cache."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from counted_histogram import compare, counted
from handmade_stores import LOG_SIZE, healthy
from timeline_incidents import write_store

from engine.codec.message import Unit
from engine.inspection import open_store
from engine.inspection.histogram import log_histogram as module
from engine.inspection.histogram.log_histogram import TimeRange, read_histogram
from engine.inspection.histogram.time_bins import TimeBins
from engine.mapped.reading import SystemDisk
from engine.query import parse

Golden = Callable[[str], Path]
STORES = ["clean-5.3.3", "crash-flip-5.3.3", "first-files-deleted-5.3.3", "multi-queue-ext-5.3.3", "broker-crash"]


def path_of(golden: Callable[..., Path], name: str) -> Path:
    return golden(name, "store-recovered") if name == "broker-crash" else golden(name)


@pytest.mark.parametrize("name", STORES)
def test_the_histogram_of_a_real_store_is_a_plain_count(golden: Golden, tmp_path: Path, name: str) -> None:
    with open_store(path_of(golden, name)) as store:
        for cache in (None, tmp_path, tmp_path):
            histogram = read_histogram(store.log, cache=cache)
            compare(histogram.bins.table(), counted(store.units(crc=False), histogram.bins.width))
            assert histogram.is_complete
        condition = parse("size > 300 and queueId < 3")
        test = condition.compile(store.log.file_name)
        histogram = read_histogram(store.log, condition)
        compare(histogram.bins.table(), counted(store.units(crc=False), histogram.bins.width, test))


@pytest.mark.parametrize("seed", range(3))
def test_a_clock_that_was_set_back_and_damage_change_no_sum(tmp_path: Path, seed: int) -> None:
    root = write_store(tmp_path / "store", seed).root
    log = sorted((root / "commitlog").iterdir())[0]
    with log.open("r+b") as file:
        place = random.Random(seed).randrange(20_000, 100_000)
        file.seek(place)
        file.write(b"\xff" * 64)
    with open_store(root) as store:
        histogram = read_histogram(store.log, cache=tmp_path / "cache")
        compare(histogram.bins.table(), counted(store.units(crc=False), histogram.bins.width))
        assert histogram.damaged > 0
        times = [item.store_timestamp for item in store.units(crc=False) if isinstance(item, Unit)]
        steps = [first - second for first, second in pairwise(times) if second < first]
        assert (histogram.steps_back, histogram.largest_step_ms) == (len(steps), max(steps, default=0))


def test_a_short_time_is_counted_to_the_millisecond(golden: Golden, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "MAX_BINS", 12)
    with open_store(golden("broker-orders")) as store:
        for cache in (None, tmp_path):
            overview = read_histogram(store.log, cache=cache)
            begin = overview.bins.table().starts[3] + 7
            end = begin + 40
            start, stop = overview.bins.within(begin, end).offsets
            histogram = read_histogram(store.log, time_range=TimeRange(begin, end, 1, start, stop), cache=cache)
            assert histogram.bins.width == 1
            times = range(begin, end)
            compare(histogram.bins.table(), counted(store.units(crc=False), 1, partial(stored_in, times)))


def test_a_run_that_is_stopped_returns_what_it_has_and_partial_results_grow(golden: Golden, monkeypatch) -> None:
    monkeypatch.setattr(module, "PARTIAL_EVERY_S", 0.0)
    monkeypatch.setattr(module, "scan_log", small_blocks)
    with open_store(golden("clean-5.3.3")) as store:
        partial_units: list[int] = []
        histogram = read_histogram(
            store.log,
            on_partial=lambda so_far: partial_units.append(so_far.units),
            cancelled=lambda: len(partial_units) >= 3,
        )
        assert not histogram.is_complete
        assert partial_units == sorted(partial_units)
        assert 0 < histogram.units < read_histogram(store.log).units


def stored_in(times: range, unit: Unit) -> bool:
    return unit.store_timestamp in times


def small_blocks(*args, **kwargs):
    from engine.inspection.block_scan import scan_log

    return scan_log(*args, **kwargs, rows=50)


def test_an_unreadable_file_is_no_absence_of_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = healthy().write(tmp_path / "store")
    opened, unreadable = SystemDisk.open, str(root / "commitlog" / f"{LOG_SIZE:020d}")

    def refuse(self: SystemDisk, path: str) -> int:
        if path == unreadable:
            raise OSError(errno.EACCES, "Permission denied", path)
        return opened(self, path)

    with monkeypatch.context() as patched:
        patched.setattr(SystemDisk, "open", refuse)
        with open_store(root) as store:
            blind = read_histogram(store.log, cache=tmp_path / "cache")
            assert blind.unread == LOG_SIZE
            assert not blind.is_complete
    with open_store(root) as store:
        histogram = read_histogram(store.log, cache=tmp_path / "cache")
        assert histogram.unread == 0
        assert histogram.units > blind.units
        compare(histogram.bins.table(), counted(store.units(crc=False), histogram.bins.width))


def test_a_log_without_files_has_no_bins(tmp_path: Path) -> None:
    (tmp_path / "store" / "commitlog").mkdir(parents=True)
    with open_store(tmp_path / "store") as store:
        assert len(read_histogram(store.log, cache=tmp_path / "cache").bins) == 0
        assert TimeBins().span == (0, 0)
