"""Messages that a store lost from its log and has in a compacted queue or in tiered storage."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from salvage_rounds import salvage

from engine.codec.message import Unit
from engine.inspection.snapshot import open_store


def units_of(root: Path) -> dict[int, tuple[str, bytes]]:
    with open_store(root) as store:
        return {
            item.offset: (item.topic, store.log.read(item.offset, item.size))
            for item in store.units()
            if isinstance(item, Unit)
        }


@pytest.mark.parametrize(
    ("name", "topics"), [("broker-compaction-5.5.1", {"StockLevels"}), ("tiered-5.5.1", {"Orders", "Payments"})]
)
def test_a_lost_message_is_as_it_was_in_the_log(
    golden: Callable[[str], Path], tmp_path: Path, name: str, topics: set[str]
) -> None:
    """A copy has another physical offset: as an image it was listed as a conflict."""
    truth = units_of(golden(name))
    root = tmp_path / "store"
    shutil.copytree(golden(name), root, ignore=shutil.ignore_patterns("timerwheel"))
    (path, *_) = sorted((root / "commitlog").iterdir())
    data = bytearray(path.read_bytes())
    used = len(data.rstrip(b"\0"))
    data[used // 4 : used // 2] = bytes(used // 2 - used // 4)
    path.write_bytes(data)
    rows = [row for row in salvage(root, []) if row.verdict == "whole"]
    assert len(rows) > 5
    assert [(row.topic, row.data) for row in rows] == [truth[row.physical_offset or 0] for row in rows]
    assert {row.topic for row in rows} == topics
    assert all({"storeCopy", "queueEntry", "missingInLog"} <= {*row.evidence} for row in rows)
    place = rows[0].places[0]
    assert Path(place.file).read_bytes()[place.offset : place.offset + place.size][:28] == rows[0].data[:28]


def test_a_sound_store_with_compacted_queues_has_nothing_to_salvage(golden: Callable[[str], Path]) -> None:
    assert salvage(golden("broker-compaction-5.5.1"), []) == []
