"""The worker's histogram: at most so many bars and topics, a part in the asked width, and what was left out."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from controls import FakeControl
from counted_histogram import counted

from engine.inspection import open_store
from viewer.runtime import histogram_work as module
from viewer.runtime.histogram_work import Range, read

Golden = Callable[[str], Path]
NOW = time.time_ns() // 1_000_000


def test_bars_and_topics_are_limited_and_nothing_is_lost(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BARS", 30)
    monkeypatch.setattr(module, "TOPICS", 1)
    data = read(FakeControl(), golden("broker-orders"), None, "", NOW)
    assert len(data.topics) == 2
    assert data.topics[1] == ""
    assert (data.starts[-1] - data.starts[0]) // data.width < 30
    with open_store(golden("broker-orders")) as store:
        bins = counted(store.units(crc=False), data.width)
    assert data.starts == sorted(bins)
    assert [sum(counts) for counts in zip(*data.messages, strict=True)] == [
        sum(bins[start].messages.values()) for start in data.starts
    ]
    assert (data.is_complete, data.far) == (True, 0)


def test_a_part_has_bars_of_the_asked_width(golden: Golden, tmp_path: Path) -> None:
    path = golden("broker-orders")
    data = read(FakeControl(), path, None, "queueId = 0", NOW)
    begin = data.starts[len(data.starts) // 2]
    for where, cache in (("queueId = 0", None), ("", tmp_path)):
        part = read(FakeControl(), path, None, where, NOW, Range(begin, begin + 500, 50, 0, 1 << 40), cache)
        assert part.width == 50
        with open_store(path) as store:
            bins = counted(
                store.units(crc=False),
                50,
                lambda unit: begin <= unit.store_timestamp < begin + 500 and (not where or unit.queue_id == 0),  # noqa: B023
            )
        assert part.starts == sorted(bins)


def test_a_time_that_damage_changed_does_not_press_the_others_together(tmp_path: Path, golden: Golden) -> None:
    import shutil

    copy = tmp_path / "store"
    shutil.copytree(golden("broker-orders"), copy)
    with open_store(copy) as store:
        unit = next(item for item in store.units(crc=False) if hasattr(item, "topic"))
        start = store.log.files[0].start_offset
    file = sorted((copy / "commitlog").iterdir())[0]
    file.chmod(0o644)
    with file.open("r+b") as opened:
        opened.seek(unit.offset - start + 56)
        opened.write((1 << 60).to_bytes(8, "big"))
    data = read(FakeControl(), copy, None, "", NOW)
    assert data.far == 1
    assert data.starts[-1] - data.starts[0] < 86_400_000
