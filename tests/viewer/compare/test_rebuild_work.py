"""A rebuild equals a broker's files, a differing byte is named, and a stop leaves no files."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.inspection.samples import sample
from engine.inspection.snapshot import open_store
from tests.support.controls import FakeControl
from viewer.compare.rebuild_work import amounts, rebuild, refusal
from viewer.runtime.jobs import Cancelled


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return Path(shutil.copytree(sample("orders"), tmp_path / "store"))


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_rebuilt_equals_the_brokers_own(store: Path, tmp_path: Path) -> None:
    files_before = _files(store)
    comparison = rebuild(FakeControl(), store, None, tmp_path / "built")
    assert comparison.rows
    assert all(compared.equal and compared.here == compared.rebuilt for compared in comparison.rows)
    queues = [compared for compared in comparison.rows if compared.queue_id is not None]
    assert sum(compared.rebuilt for compared in queues) == comparison.built.entries
    assert (
        sum(compared.rebuilt for compared in comparison.rows if compared.queue_id is None)
        == comparison.built.index_entries
    )
    with open_store(store) as opened:
        assert amounts(opened).queues == len(queues)
    assert (tmp_path / "built" / "consumequeue").is_dir()
    assert _files(store) == files_before


def _other_tag(file: Path) -> None:
    raw = bytearray(file.read_bytes())
    raw[3 * 20 + 19] ^= 1
    file.write_bytes(raw)


def _less(file: Path) -> None:
    shutil.rmtree(file.parent)


@pytest.mark.parametrize(("work", "entry", "in_store"), [(_other_tag, 3, True), (_less, 0, False)])
def test_the_first_entry_of_a_queue_that_differs_is_named(
    store: Path, tmp_path: Path, work: Callable[[Path], None], entry: int, in_store: bool
) -> None:
    undamaged = rebuild(FakeControl(), store, None, tmp_path / "whole")
    longest = max(
        (compared for compared in undamaged.rows if compared.queue_id is not None), key=lambda compared: compared.here
    )
    work(store / "consumequeue" / longest.topic / str(longest.queue_id) / f"{0:020}")
    comparison = rebuild(FakeControl(), store, None, tmp_path / "built")
    (differing,) = (compared for compared in comparison.rows if not compared.equal)
    assert (differing.topic, differing.queue_id, differing.difference, differing.in_store) == (
        longest.topic,
        longest.queue_id,
        entry,
        in_store,
    )
    assert differing.rebuilt == longest.rebuilt
    assert differing.here == (longest.here if in_store else 0)
    assert differing.offset is not None


def test_an_index_entry_that_differs_is_named(store: Path, tmp_path: Path) -> None:
    with open_store(store) as opened:
        reader = opened.index_files()[1]
        assert reader.geometry is not None
        position, path, name = reader.geometry.entry_position(7), Path(reader.path), reader.name
    raw = bytearray(path.read_bytes())
    key_hash = struct.unpack_from(">i", raw, position)[0]
    struct.pack_into(">i", raw, position, key_hash ^ 1)
    path.write_bytes(raw)
    comparison = rebuild(FakeControl(), store, None, tmp_path / "built")
    (differing,) = (compared for compared in comparison.rows if not compared.equal)
    assert (differing.name, differing.difference, differing.queue_id, differing.here) == (
        name,
        7,
        None,
        differing.rebuilt,
    )


@pytest.mark.parametrize("check_count", [1, 3, 8, 30])
def test_a_stop_leaves_no_files(store: Path, tmp_path: Path, check_count: int) -> None:
    with pytest.raises(Cancelled):
        rebuild(FakeControl(check_count, Cancelled), store, None, tmp_path / "built")
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_only_absent_and_empty_targets_outside_the_store_are_accepted(store: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert not refusal(store, tmp_path / "empty")
    assert not refusal(store, tmp_path / "new")
    assert "into the store" in refusal(store, store / "new")
    assert "is something" in refusal(store, tmp_path)
    with open_store(store / "commitlog") as part:
        assert "part of a store" in amounts(part).refusal


def test_index_entries_of_tags_are_no_difference(golden: Callable[[str], Path], tmp_path: Path) -> None:
    """The index of a healthy store of 5.5 was reported as different from its log: a quarter of its entries are tag
    entries.
    """
    comparison = rebuild(FakeControl(), golden("broker-tags-5.5.1"), None, tmp_path / "built")
    assert [compared for compared in comparison.rows if not compared.equal] == []
