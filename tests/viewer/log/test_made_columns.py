from __future__ import annotations

import pytest

from engine.codec.message import decode
from tests.support.made_stores import unit_bytes
from viewer.log.made_columns import field_name, made_column, readers
from viewer.log.rows import unit_row


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
