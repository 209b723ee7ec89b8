"""Rows of two logs: level by offset or by message, read in pieces from any place, with a sign that is true."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from controls import FakeControl, StoppedByTest
from written_logs import FILE_BYTES, Message, message, write_log

from engine.inspection.snapshot import StoreSnapshot, open_store
from viewer.compare.pair_model import compare_stores
from viewer.compare.pair_rows import DifferenceSpan, DifferenceSpans, PairRow, PairSource, joined_spans
from viewer.widgets.row_window import Page

GAP = 160


def messages(count: int, first: int = 0, body: bytes = b"") -> list[Message]:
    """Make messages of two queues in turn."""
    return [message("Orders", n % 2, n // 2, body + b"b" * (n % 5)) for n in range(first, first + count)]


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for store in ("a", "b"):
        shutil.rmtree(tmp_path / store, ignore_errors=True)


Stores = tuple[StoreSnapshot, StoreSnapshot]


def opened(folders: Path, units: list[Message], other_units: list[Message]) -> Stores:
    paths = write_log(folders / "a", units, FILE_BYTES), write_log(folders / "b", other_units, FILE_BYTES)
    return open_store(paths[0]), open_store(paths[1])


def compared(stores: Stores) -> PairSource:
    """Return the rows as the view shows them once both stores are compared."""
    result = compare_stores(FakeControl(0, StoppedByTest), *stores)
    return PairSource(*stores, result.tail)


def all_rows(source: PairSource, chunk: int) -> list[PairRow]:
    """Read the rows forward in chunks, as a table does that is scrolled down."""
    page = source.read(source.start, 0, chunk)
    rows = list(page.rows)
    while not page.is_last:
        page = source.read(source.behind(rows[-1]), 0, chunk)
        rows += page.rows
    return rows


def backward(source: PairSource, chunk: int) -> list[PairRow]:
    """Read the rows from the end back."""
    page: Page[PairRow] = source.read(source.end + GAP, chunk, 0)
    rows = list(page.rows)
    while not page.is_first:
        page = source.read(source.position(rows[0]), chunk, 0)
        rows[:0] = page.rows
    return rows


def signs(rows: list[PairRow]) -> str:
    letters = {"same": "=", "differs": "≠", "own": "<", "other": ">", "unrelated": "|", "end": ".", "unread": "?"}
    return "".join(letters[row.sign] for row in rows)


@pytest.mark.parametrize("chunk", [1, 3, 40])
def test_a_slave_that_lags_has_grey_rows_behind_its_end(folders: Path, chunk: int) -> None:
    stores = opened(folders, messages(40), messages(31))
    source = PairSource(*stores)
    rows = all_rows(source, max(chunk, 2))
    assert signs(rows).rstrip(".") == "=" * 31 + "<" * 9
    assert [row.absence for row in rows if row.other is None and row.sign == "own"] == ["end"] * 8, (
        "the first one stands beside the zeros behind B's last message"
    )
    assert [row.position for row in rows] == sorted({row.position for row in rows})
    assert [row.position for row in backward(source, max(chunk, 2))] == [row.position for row in rows]


def test_another_body_differs_and_another_message_is_unrelated(folders: Path) -> None:
    units = messages(6)
    other_units = [*units[:1], *messages(1, 1, body=b"")[:1], *units[2:]]
    other_units[1] = message("Orders", 1, 0, b"x")
    stores = opened(folders, units, other_units)
    assert signs(all_rows(PairSource(*stores), 40)).rstrip(".") == "=≠===="
    other_units[1] = message("Paid_1", 1, 0, b"b")
    stores = opened(folders / "unrelated", units, other_units)
    assert signs(all_rows(PairSource(*stores), 40)).rstrip(".") == "=|===="


@pytest.mark.parametrize("chunk", [2, 5, 100])
def test_a_copy_without_some_messages_is_level_by_message(folders: Path, chunk: int) -> None:
    units = messages(60)
    kept = [unit for number, unit in enumerate(units) if number % 7 != 3]
    source = compared(opened(folders, units, kept))
    assert source.tail is not None
    rows = all_rows(source, chunk)
    assert signs(rows) == "".join("<" if number % 7 == 3 else "=" for number in range(60))
    assert [row.position for row in backward(source, chunk)] == [row.position for row in rows]
    for row in rows:
        if row.own is not None and row.other is not None:
            assert (row.own.queue_id, row.own.queue_offset) == (row.other.queue_id, row.other.queue_offset)  # type: ignore[union-attr]
        side_offset = row.own.offset if row.own is not None else -1
        assert source.position_of_offset(side_offset) == row.position


def test_any_place_leads_to_the_row_that_holds_it(folders: Path) -> None:
    units = messages(60)
    for source in (
        PairSource(*opened(folders / "1", units, units[:50])),
        compared(opened(folders / "2", units, units[:20] + units[25:])),
    ):
        rows = all_rows(source, 100)
        for row, following in pairwise(rows):
            for position in (row.position, (row.position + following.position) // 2, following.position - 1):
                page = source.read(position, 4, 4)
                assert page.rows[page.rows_before].position == row.position
        assert source.read(source.start, 4, 4).is_first
        assert source.read(source.end, 4, 4).is_last


def test_spans_are_stepped_through_in_both_directions() -> None:
    spans = DifferenceSpans([DifferenceSpan(50, 60, "own"), DifferenceSpan(10, 20, "differs")])
    assert spans.step(1, None) == 0
    assert spans.step(-1, None) == 1
    assert [spans.step(1, position) for position in (0, 10, 15, 50, 70)] == [0, 1, 1, None, None]
    assert [spans.step(-1, position) for position in (0, 10, 15, 50, 70)] == [None, None, 0, 0, 1]
    assert [spans.number_at(position) for position in (9, 10, 19, 20, 55)] == [None, 0, 0, None, 1]


def test_spans_that_cannot_be_told_apart_are_drawn_as_one() -> None:
    spans = [DifferenceSpan(n * 10, n * 10 + 5, "own" if n % 2 else "differs") for n in range(100_000)]
    assert len(joined_spans(spans, 0, 1_000_000)) == 2
    spread = joined_spans(spans, 0, 10_000)
    assert 2 <= len(spread) <= 100_000
    assert joined_spans([], 0, 0) == []
