"""All differences of two stores: changes are named, equal parts are skipped, and a stop keeps the results so far."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest
from controls import FakeControl, StoppedByTest

from engine.errors import UsageError
from engine.inspection import difference_rows
from engine.inspection.capsule_making import make_capsule
from engine.inspection.difference_rows import Differences, Row
from engine.inspection.samples import sample
from engine.inspection.snapshot import open_store
from engine.inspection.store_differences import compare, first_difference_position


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Make the sample store and a copy of it that may be changed."""
    return sample("orders"), Path(shutil.copytree(sample("orders"), tmp_path / "other"))


def differences(path: Path, other_path: Path, check_count: int = 0) -> Differences:
    result = Differences()
    with open_store(path) as store, open_store(other_path) as other_store:
        compare(FakeControl(check_count, StoppedByTest), store, other_store, result)
    return result


def of_kind(result: Differences, kind: str) -> list[Row]:
    return [row for row in result.rows if row.kind == kind]


def log_file(store: Path, offset: int) -> tuple[Path, int]:
    """Return the file of a byte of the log, and its position in that file."""
    files = sorted((store / "commitlog").iterdir())
    file = max((file for file in files if int(file.name) <= offset), key=lambda file: int(file.name))
    return file, offset - int(file.name)


def change(file: Path, position: int, data: bytes) -> None:
    raw = bytearray(file.read_bytes())
    raw[position : position + len(data)] = data
    file.write_bytes(raw)


def offsets(store: Path) -> list[tuple[int, int]]:
    with open_store(store) as opened:
        return [(unit.offset, unit.size) for unit in opened.units() if hasattr(unit, "topic")]


def test_a_copy_is_equal(pair: tuple[Path, Path]) -> None:
    result = differences(*pair)
    assert result.rows == []
    assert result.total == 0
    with open_store(pair[0]) as store:
        assert result.compared_bytes == store.log.max_offset - store.log.min_offset


def test_capsules_are_compared_with_each_other_and_not_with_stores(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """Every unit with a body differed: the capsule has a stand-in for it."""
    capsules = [tmp_path / "a.capsule", tmp_path / "b.capsule"]
    for path, capsule in zip(pair, capsules, strict=True):
        with open_store(path) as store:
            make_capsule(store, capsule, 1)
    assert differences(*capsules).rows == []
    with pytest.raises(UsageError, match="compared with another capsule, not with a store"):
        differences(capsules[0], pair[1])


def test_exactly_the_differing_units_are_named_with_their_fields(pair: tuple[Path, Path]) -> None:
    store, other_store = pair
    units = offsets(store)
    changed = [units[3], units[4], units[200], units[-1]]
    for offset, size in changed:
        file, position = log_file(other_store, offset)
        change(file, position + 16, struct.pack(">i", 77))  # the unit's flag
        assert size > 20
    rows = of_kind(differences(store, other_store), "unit")
    assert [row.offset for row in rows] == [offset for offset, _ in changed]
    assert {(row.side, row.fields, row.count) for row in rows} == {("differs", "flag", 1)}


def test_a_unit_that_became_damage_is_one_difference(pair: tuple[Path, Path]) -> None:
    store, other_store = pair
    offset, size = offsets(store)[10]
    file, position = log_file(other_store, offset)
    change(file, position, b"\xff" * 8)
    (row,) = of_kind(differences(store, other_store), "unit")
    assert (row.side, row.size) == ("differs", size)
    assert "damage" in row.text_there
    assert "unit" in row.text_here


def test_the_missing_tail_of_a_shorter_log_is_one_row(pair: tuple[Path, Path]) -> None:
    store, other_store = pair
    units = offsets(store)
    cut, _ = units[-40]
    file, position = log_file(other_store, cut)
    raw = bytearray(file.read_bytes())
    raw[position:] = bytes(len(raw) - position)
    file.write_bytes(raw)
    for later in (other_store / "commitlog").iterdir():
        if int(later.name) > cut:
            later.unlink()
    result = differences(store, other_store)
    (row,) = of_kind(result, "unit")
    assert (row.side, row.count, row.offset) == ("here", 40, cut)
    reversed_rows = of_kind(differences(other_store, store), "unit")
    assert [(row.side, row.count) for row in reversed_rows] == [("there", 40)]


def test_entries_that_differ_are_runs(pair: tuple[Path, Path]) -> None:
    store_path, other_path = pair
    with open_store(store_path) as store:
        topic, number = next(
            (t, q)
            for t, queues in store.topics().items()
            for q, one_queue in queues.items()
            if one_queue.max_offset > 20
        )
    file = min((other_path / "consumequeue" / topic / str(number)).iterdir())
    for entry in (3, 4, 9):
        change(file, entry * 20 + 12, struct.pack(">q", 4711))
    rows = of_kind(differences(store_path, other_path), "queue")
    assert [(row.subject, row.count, row.fields) for row in rows] == [
        (f"{topic}/{number}/3", 2, "tags_code"),
        (f"{topic}/{number}/9", 1, "tags_code"),
    ]
    shutil.rmtree(file.parent)
    (row,) = of_kind(differences(store_path, other_path), "queue")
    assert (row.side, row.subject) == ("here", f"{topic}/{number}")


def test_index_tables_checkpoint_and_state(pair: tuple[Path, Path]) -> None:
    store_path, other_path = pair
    index = min((other_path / "index").iterdir())
    with open_store(other_path) as store:
        reader = store.index_files()[0]
        assert reader.geometry is not None
        position = reader.geometry.entry_position(5)
    change(index, position, struct.pack(">i", 12345))
    change(other_path / "checkpoint", 0, struct.pack(">q", 1_700_000_000_000))
    table = other_path / "config" / "consumerOffset.json"
    text = table.read_text()
    table.write_text(
        text.replace('"OrderPaid@billing":{0:260', '"OrderPaid@billing":{0:1234567')[:-1] + ',"added":true}'
    )
    (other_path / "abort").touch() if not (other_path / "abort").exists() else (other_path / "abort").unlink()
    result = differences(store_path, other_path)
    assert {row.subject.split("/")[-1] for row in of_kind(result, "index")} == {"5"}
    (page,) = of_kind(result, "checkpoint")
    assert (page.subject, page.text_there) == ("physicMsgTimestamp", "1,700,000,000,000")
    tables = {row.subject: (row.text_here, row.text_there) for row in of_kind(result, "config")}
    assert tables["consumerOffset.json offsetTable.OrderPaid@billing.0"] == ("260", "1234567")
    assert tables["consumerOffset.json added"] == ("", "true")
    assert [row.subject for row in of_kind(result, "state")] == ["abort"]
    assert result.total == len(result.rows)


def test_rows_are_bounded_and_all_are_counted(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    store, other_store = pair
    for offset, _ in offsets(store)[:10]:
        file, position = log_file(other_store, offset)
        change(file, position + 16, struct.pack(">i", 77))
    monkeypatch.setattr(difference_rows, "MAX_ROWS", 4)
    result = differences(store, other_store)
    assert len(result.rows) == 4
    assert result.is_truncated
    assert result.counts == {("unit", "differs"): 10}


def test_a_stop_keeps_the_results_so_far(pair: tuple[Path, Path]) -> None:
    path, other_path = pair
    offset, _ = offsets(path)[0]
    file, position = log_file(other_path, offset)
    change(file, position + 16, struct.pack(">i", 77))
    result = Differences()
    with open_store(path) as store, open_store(other_path) as other_store, pytest.raises(StoppedByTest):
        compare(FakeControl(3, StoppedByTest), store, other_store, result)
    assert [row.kind for row in result.rows] == ["unit"]


@pytest.mark.parametrize(("data", "other_data", "position"), [(b"", b"", 0), (b"abc", b"abd", 2), (b"ab", b"abc", 2)])
def test_the_first_differing_byte(data: bytes, other_data: bytes, position: int) -> None:
    assert first_difference_position(data, other_data) == position
