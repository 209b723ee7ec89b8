"""Columns and marks of the log's rows."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication

from engine.codec.message import decode
from engine.inspection import open_store
from tests.support.handmade_stores import unit_bytes
from viewer.log.columns import field_name, look, made_column, readers, unit_kind, verdict
from viewer.log.rows import LogSource, NonUnitRow, UnitRow, unit_row


def test_an_unreadable_row_is_no_damage(themed_app: QApplication) -> None:
    results = look(NonUnitRow("error", 0, 100, 100, "Permission denied"))
    assert results is not None
    assert (results.mark, results.fill, results.tone) == ("unread", "sunken", "text2")


KIND = unit_kind(lambda topic, queue_id, offset: (topic, queue_id, offset))


@pytest.fixture
def flipped(golden):
    with open_store(golden("crash-flip-5.3.3")) as store:
        yield store


def everything(source):
    return source.read(source.start, 0, 1 << 20).rows


def test_a_wrong_crc_is_marked_and_mentioned_first(flipped):
    bad = [row for row in everything(LogSource(flipped.log)) if isinstance(row, UnitRow) and row.crc == "bad"]
    assert len(bad) == 1
    assert look(bad[0]).mark == "error"
    assert KIND.speak(bad[0]).startswith("body CRC bad. ")


def test_edges_have_texts(flipped):
    rows = [row for row in everything(LogSource(flipped.log)) if isinstance(row, NonUnitRow)]
    assert {row.kind for row in rows} >= {"blank", "zero"}
    blank = next(row for row in rows if row.kind == "blank")
    assert blank.next_file in look(blank).words
    assert look(NonUnitRow("damage", 5, 1874, 1879, "length field says 1,936,422,189")).fill == "errorFill"
    assert verdict(NonUnitRow("damage", 5, 9, 14)) == "damage"


@pytest.fixture
def unit():
    return decode(unit_bytes("Orders", 2, 7, 0, 1_700_000_000_000, properties={"KEYS": "K1", "TRACE_ON": "true"}))


def shown(unit, name):
    row = unit_row(unit, fields=readers([name]))
    return made_column(name).text(row)


def test_a_field_that_no_table_shows_becomes_a_column(unit):
    assert shown(unit, "bornHost") == unit.born_host
    assert shown(unit, "bodyCRC") == f"0x{unit.body_crc & 0xFFFFFFFF:08X}"
    assert shown(unit, "propertiesLength") == f"{len(unit.properties_raw):,}"
    assert made_column("bornTimestamp").elide == "never"


def test_a_property_becomes_a_column(unit):
    name, value = next(iter(unit.properties.items()))
    assert shown(unit, f"properties.{name}") == value
    assert shown(unit, "properties.NOT_THERE") == ""


def test_a_row_that_was_read_before_the_column_was_made_has_no_value(unit):
    assert made_column("bornHost").text(unit_row(unit)) == ""


@pytest.mark.parametrize(("line", "name"), [("totalSize", "size"), ("magicCode", "version"), ("flip.3", ""), ("", "")])
def test_lines_of_the_tree_are_columns_under_their_names_in_tables(line, name):
    assert field_name(line) == name
    assert made_column("nonsense") is None


@pytest.mark.golden
def test_remains_of_replaced_entries_are_no_zero_tail(golden):
    with open_store(golden("dledger-replaced-5.5.1")) as store:
        rows = everything(LogSource(store.log))
    assert look(rows[-1]).words == "End of the log · remains of entries that a later leader replaced"
