"""The table of two logs in words: for copying, and for a screen reader."""

from __future__ import annotations

from viewer.compare.pair_columns import OTHER, OWN, pair_kind, words_of
from viewer.compare.pair_rows import PairRow
from viewer.log.rows import NonUnitRow, UnitRow

UNIT = UnitRow(100, 50, "Orders", 1, 7, 1_700_000_000_000, None, ["K1"], "ok", "", False, 0, b"")


def test_a_message_that_one_side_lacks_is_told_with_the_reason() -> None:
    row = PairRow(100, 150, UNIT, None, "own", "end")
    kind = pair_kind()
    assert kind.speak(row).startswith("only in A. B: not here: behind the end of B. ")
    assert words_of(row, OWN) is None
    record = kind.as_record(row)
    assert record["b"] is None
    assert record["a"]["queueOffset"] == 7


def test_each_side_shows_its_own_values_and_only_this_store_has_links() -> None:
    damage = NonUnitRow("damage", 100, 50, 150, "length field")
    row = PairRow(100, 150, UNIT, damage, "differs")
    columns = {column.key: column for column in pair_kind().columns}
    assert columns["own.topic"].text(row) == "Orders"
    assert columns["other.topic"].text(row) == ""
    assert columns["other.physicalOffset"].text(row) == "100"
    assert columns["own.queueOffset"].jump(row) is not None
    assert columns["other.queueOffset"].jump is None
    assert columns["sign"].text(row) == "≠"
    assert words_of(row, OTHER).mark == "error"


def test_keys_leave_where_there_is_no_room() -> None:
    keys = {column.key for column in pair_kind(with_keys=False).columns}
    assert not {"own.keys", "other.keys"} & keys
    assert {"own.crc", "other.crc"} <= keys


def test_a_row_of_the_other_store_is_no_place_of_this_one() -> None:
    """The menu offered to go to the offset of the other store in this log."""
    row = PairRow(100, 150, None, UNIT, "other")
    assert row.physical_offset is None
    assert pair_kind().command(row)[2] == "OTHER_STORE"
    assert pair_kind().command(PairRow(100, 150, UNIT, None, "own"))[2] == "STORE"
