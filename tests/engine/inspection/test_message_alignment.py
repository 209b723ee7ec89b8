"""Two logs side by side: each message once, in the order of both logs, level with the same message."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from controls import FakeControl, StoppedByTest
from written_logs import FILE_BYTES, Message, message, write_log

from engine.codec.message import Unit
from engine.inspection.message_alignment import align_messages
from engine.inspection.message_differences import LogRange
from engine.inspection.snapshot import open_store
from engine.inspection.store_differences import align_from

SIGNS = "=≠◂▸|"


def messages(count: int, first: int = 0, *, body: bytes = b"") -> list[Message]:
    """Make messages of two queues in turn."""
    return [message("Orders", n % 2, n // 2, body + b"b" * (n % 5)) for n in range(first, first + count)]


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for store in ("a", "b"):
        shutil.rmtree(tmp_path / store, ignore_errors=True)


def aligned(folders: Path, units: list[Message], other_units: list[Message]) -> tuple[str, list[str], list[str]]:
    """Return the signs of the rows, and the message of each side of each row."""
    paths = write_log(folders / "a", units, FILE_BYTES), write_log(folders / "b", other_units, FILE_BYTES)
    with open_store(paths[0]) as store, open_store(paths[1]) as other_store:
        rows = align_from(FakeControl(0, StoppedByTest), store, other_store, 0)
        assert rows is not None
        sides: tuple[list[str], list[str]] = ([], [])
        offset_columns = (rows.offsets, rows.other_offsets)
        for side, log, offsets in zip(sides, (store.log, other_store.log), offset_columns, strict=True):
            for offset in offsets.tolist():
                unit = log.unit_at(offset) if offset >= 0 else None
                side.append(f"{unit.queue_id}/{unit.queue_offset}" if isinstance(unit, Unit) else "")
        return "".join(SIGNS[kind] for kind in rows.kinds.tolist()), *sides


def test_equal_logs_are_level(folders: Path) -> None:
    signs, own, other = aligned(folders, messages(6), messages(6))
    assert signs == "======"
    assert own == other == ["0/0", "1/0", "0/1", "1/1", "0/2", "1/2"]


def test_a_message_that_one_log_lacks_leaves_a_gap_in_its_place(folders: Path) -> None:
    units = messages(5)
    signs, _own, other = aligned(folders, units, units[:2] + units[3:])
    assert signs == "==◂=="
    assert other == ["0/0", "1/0", "", "1/1", "0/2"]


def test_a_message_before_the_first_of_the_other_log_stands_before_it(folders: Path) -> None:
    units = messages(5)
    signs, own, _other = aligned(folders, units[1:], units)
    assert signs == "▸===="
    assert own[0] == ""


def test_another_body_differs_and_stays_level(folders: Path) -> None:
    units = messages(4)
    signs, own, other = aligned(folders, units, [*units[:1], *messages(1, 1, body=b"x"), *units[2:]])
    assert signs == "=≠=="
    assert own == other


def test_messages_of_both_sides_behind_a_fork_share_rows(folders: Path) -> None:
    common = messages(2)
    own_messages = [message("A", 0, n, b"a") for n in range(3)]
    other_messages = [message("B", 0, n, b"b") for n in range(2)]
    signs, _own, other = aligned(folders, common + own_messages, common + other_messages)
    assert signs == "==||◂"
    assert other[2:] == ["0/0", "0/1", ""]


def test_a_message_elsewhere_stands_beside_its_counterpart(folders: Path) -> None:
    units = messages(4)
    signs, own, other = aligned(folders, units, [units[1], units[0], *units[2:]])
    assert signs == "===="
    assert own == other, "the order is that of the first log"


def test_too_many_messages_are_not_put_side_by_side(folders: Path) -> None:
    path = write_log(folders / "a", messages(5), FILE_BYTES)
    with open_store(path) as store:
        log_range = LogRange(store.log, 0, store.log.max_offset)
        assert align_messages(FakeControl(0, StoppedByTest), log_range, log_range, max_units=4) is None
        rows = align_messages(FakeControl(0, StoppedByTest), log_range, log_range, max_units=5)
        assert rows is not None
        assert len(rows) == 5
