"""The first byte in which two logs differ."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from controls import FakeControl, StoppedByTest
from handmade_stores import HandmadeStore, healthy

from engine.inspection.snapshot import open_store
from viewer.compare.first_difference import Difference, first_difference, sentence


@pytest.fixture
def healthy_store() -> HandmadeStore:
    """Make units over several files of 4 KiB."""
    return healthy()


@pytest.fixture
def pair(healthy_store: HandmadeStore, tmp_path: Path) -> tuple[Path, Path]:
    """Make a store and a copy that may be changed."""
    store = healthy_store.write(tmp_path / "one")
    return store, Path(shutil.copytree(store, tmp_path / "other"))


def spoil(store: Path, offset: int, size: int = 4096) -> None:
    """Invert the byte of the log at ``offset``."""
    file = store / "commitlog" / f"{offset // size * size:020d}"
    raw = bytearray(file.read_bytes())
    raw[offset % size] ^= 0xFF
    file.write_bytes(raw)


def difference(path: Path, other_path: Path, start: int = 0, control: Any = None) -> Difference | None:
    with open_store(path) as store, open_store(other_path) as other_store:
        return first_difference(control or FakeControl(), store, other_store, start)


def test_a_copy_has_no_difference(pair: tuple[Path, Path]) -> None:
    assert difference(*pair) is None
    assert sentence(None) == "From here on both logs hold the same bytes."


def test_a_byte_is_named_with_its_unit_and_its_field(healthy_store: HandmadeStore, pair: tuple[Path, Path]) -> None:
    unit = healthy_store.units[20]
    spoil(pair[1], unit.offset + 15)
    named = difference(*pair)
    assert named is not None
    assert (named.offset, named.unit, named.field) == (unit.offset + 15, unit.offset, "queueId")
    assert named.entry == f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}"
    assert sentence(named) == (
        f"First difference at {named.offset:,}: {named.byte_here:02X} here, {named.byte_there:02X} there"
        f" · {named.entry} · queueId"
    )


def test_the_search_begins_at_the_given_offset(healthy_store: HandmadeStore, pair: tuple[Path, Path]) -> None:
    first_offset, second_offset = healthy_store.units[5].offset + 15, healthy_store.units[40].offset + 15
    for offset in (first_offset, second_offset):
        spoil(pair[1], offset)
    results = [difference(*pair, start) for start in (0, first_offset, first_offset + 1, second_offset + 1)]
    assert [result and result.offset for result in results] == [first_offset, first_offset, second_offset, None]


def test_a_byte_of_no_unit_is_named_by_its_offset(healthy_store: HandmadeStore, pair: tuple[Path, Path]) -> None:
    """Padding after the last unit of a file belongs to no unit."""
    spoil(pair[1], 4095)
    named = difference(*pair)
    assert named is not None
    assert (named.offset, named.unit, named.field) == (4095, None, "")
    assert sentence(named) == f"First difference at 4,095: {named.byte_here:02X} here, {named.byte_there:02X} there"


def test_a_log_that_ends_earlier_ends_there(healthy_store: HandmadeStore, pair: tuple[Path, Path]) -> None:
    files = sorted((pair[1] / "commitlog").iterdir())
    files[-1].unlink()
    named = difference(*pair)
    assert named is not None
    assert (named.offset, named.byte_there) == (int(files[-1].name), None)
    assert sentence(named) == f"From {named.offset:,} on the other log has no bytes: it ends or lacks a file."
    reversed_difference = difference(pair[1], pair[0])
    assert reversed_difference is not None
    assert (reversed_difference.offset, reversed_difference.byte_here) == (named.offset, None)
    assert sentence(reversed_difference).startswith(f"From {named.offset:,} on this log has no bytes")


def test_a_log_with_a_missing_file_is_not_called_ended(pair: tuple[Path, Path]) -> None:
    """Both of two linked windows reported that one of the logs ends, although one lacked a file in its middle."""
    sorted((pair[1] / "commitlog").iterdir())[1].unlink()
    assert sentence(difference(*pair)) == "From 4,096 on the other log has no bytes: it ends or lacks a file."


def test_a_file_that_both_lack_hides_nothing_behind_it(healthy_store: HandmadeStore, pair: tuple[Path, Path]) -> None:
    """The search ended at the first byte that neither log has, and reported that both are equal from there on."""
    for store in pair:
        (store / "commitlog" / f"{4096:020d}").unlink()
    assert difference(*pair) is None
    unit = next(candidate for candidate in healthy_store.units if candidate.offset >= 8192)
    spoil(pair[1], unit.offset + 15)
    named = difference(*pair)
    assert named is not None
    assert (named.offset, named.unit) == (unit.offset + 15, unit.offset)


def test_the_search_can_be_stopped(pair: tuple[Path, Path]) -> None:
    with pytest.raises(StoppedByTest):
        difference(*pair, control=FakeControl(1))
