"""Stores with other physical offsets are compared message by message: only what differs is named."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from controls import FakeControl, StoppedByTest
from written_logs import FILE_BYTES, Message, message, write_log

from engine.inspection import message_differences, store_differences
from engine.inspection.difference_rows import Differences
from engine.inspection.snapshot import open_store
from engine.inspection.store_differences import compare


def messages(count: int = 200, first: int = 0) -> list[Message]:
    """Make messages of three queues in turn."""
    places = [("Orders", 0), ("Orders", 1), ("Paid", 0)]
    return [message(*places[n % 3], n // 3, b"b" * (n % 7)) for n in range(first, first + count)]


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for store in ("a", "b"):
        shutil.rmtree(tmp_path / store, ignore_errors=True)


def differences(
    tmp_path: Path, units: list[Message], other_units: list[Message], sizes: tuple[int, int] = (FILE_BYTES, FILE_BYTES)
) -> Differences:
    paths = write_log(tmp_path / "a", units, sizes[0]), write_log(tmp_path / "b", other_units, sizes[1])
    result = Differences()
    with open_store(paths[0]) as store, open_store(paths[1]) as other_store:
        compare(FakeControl(0, StoppedByTest), store, other_store, result)
    return result


def unit_rows(result: Differences) -> list[tuple[str, str, int]]:
    return sorted((row.side, row.subject, row.count) for row in result.rows if row.kind == "unit")


def test_other_log_file_sizes_are_no_differences(folders: Path) -> None:
    units = messages(900)
    result = differences(folders, units, units, (FILE_BYTES, FILE_BYTES // 2))
    assert unit_rows(result) == []
    assert result.alignment == "both"
    assert result.first_row is None


def test_a_message_that_is_not_in_the_copy_is_the_only_difference(folders: Path) -> None:
    units = messages()
    result = differences(folders, units, units[:50] + units[51:])
    assert unit_rows(result) == [("here", "Paid/0/16", 1)]
    assert result.first_row is not None
    assert result.first_row.queue == ("Paid", 0, 16)
    assert result.ends == {}
    assert {place: {side: u.count for side, u in sides.items()} for place, sides in result.queues.items()} == {
        ("Paid", 0): {"here": 1}
    }


def test_logs_without_a_common_offset_are_compared_by_message(folders: Path) -> None:
    units = messages()
    result = differences(folders, units, list(reversed(units)))
    assert result.alignment == "messages"
    assert unit_rows(result) == []


def test_ends_of_queues_are_said_once(folders: Path) -> None:
    units = messages(300)
    result = differences(folders, units, list(reversed(units[30:270])))
    assert unit_rows(result) == [
        *(
            ("here", f"{queue}/{offset}", 10)
            for queue, offset in sorted(
                (queue, offset) for queue in ("Orders/0", "Orders/1", "Paid/0") for offset in (0, 90)
            )
        ),
    ]
    assert {(end.side, end.end): end.units for end in result.ends.values()} == {
        ("here", "head"): 30,
        ("here", "tail"): 30,
    }


def test_changed_bodies_renumbered_and_replaced_messages_are_named(folders: Path) -> None:
    units = messages()
    other_units = list(reversed(units))
    places = {(unit["topic"], unit["queue_id"], unit["queue_offset"]): n for n, unit in enumerate(other_units)}
    other_units[places[b"Orders", 0, 7]] = message("Orders", 0, 7, b"changed")
    other_units[places[b"Orders", 1, 66]] = message("Orders", 1, 90, b"b" * (199 % 7), key="Orders-1-66")
    other_units[places[b"Paid", 0, 20]] = message("Paid", 0, 20, b"b", key="another-key-of-it")
    rows = {row.subject: row for row in differences(folders, units, other_units).rows if row.kind == "unit"}
    assert "body" in rows["Orders/0/7"].fields
    assert rows["Orders/1/66"].fields.startswith("queueOffset")
    assert (rows["Paid/0/20"].side, rows["Paid/0/20"].count) == ("differs", 1)
    assert len(rows) == 3
    assert all(row.offset_there is not None for row in rows.values())


def test_queues_of_one_side_and_duplicates_are_counted(folders: Path) -> None:
    units = messages(60)
    other_units = [*reversed(units), units[0], message("New", 3, 0), message("New", 3, 1)]
    result = differences(folders, units, other_units)
    assert unit_rows(result) == [("there", "New/3", 2), ("there", "Orders/0/0", 1)]


def test_few_units_a_pass_give_the_same_rows(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    units = messages(300)
    other_units = [unit for n, unit in enumerate(reversed(units)) if n % 37]
    expected = unit_rows(differences(folders, units, other_units))
    assert len(expected) == 9
    monkeypatch.setattr(message_differences, "MAX_PASS_UNITS", 25)
    shutil.rmtree(folders / "a")
    shutil.rmtree(folders / "b")
    assert unit_rows(differences(folders, units, other_units)) == expected


def test_logs_meet_again_behind_a_long_range_that_differs(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log file full of other messages made all later units differ, although both logs were the same from there on."""
    units = messages(1200)
    others = [message("Other", 0, n, b"b" * (n % 7)) for n in range(1200)]
    path, other_path = write_log(folders / "a", units), write_log(folders / "b", units)
    write_log(folders / "d", others)
    second = sorted((path / "commitlog").iterdir())[1].name
    shutil.copy(folders / "d" / "commitlog" / second, other_path / "commitlog" / second)
    monkeypatch.setattr(store_differences, "MAX_STEPS_APART", 40)
    result = Differences()
    with open_store(path) as store, open_store(other_path) as other_store:
        compare(FakeControl(0, StoppedByTest), store, other_store, result)
        counts = {side: result.counts["unit", side] for side in ("here", "there")}
        start, stop = int(second), 2 * int(second)
        of_file = [
            sum(start <= unit.offset < stop for unit in side.units() if hasattr(unit, "topic"))
            for side in (store, other_store)
        ]
    assert [counts["here"], counts["there"]] == of_file
    assert result.shared_until == int(second)
    assert result.ends == {}
