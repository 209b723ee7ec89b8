"""Marks, ignored rows, the reference and rules on rows: a shape and a text beside every colour; problems keep their
mark.

Marks of rows are saved outside of the store. An unreadable file counts as no marks.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.codec.message import Unit
from engine.inspection import open_store
from engine.inspection.samples import sample
from viewer.log.colour_rules import Rule, kept, read, row_style_function
from viewer.log.columns import unit_kind
from viewer.log.row_markings import RowMarkings, RowMarks, marks_file, read_marks, time_difference, write_marks
from viewer.log.rows import unit_row
from viewer.widgets.columns import RowAppearance

RULES = [
    Rule("Paid", 'topic = "OrderPaid"', "green"),
    Rule("Off", "size > 0", "red", on=False),
    Rule("Rest", "size > 0"),
]


def rows():
    with open_store(sample("orders")) as store:
        units = [u for u in store.log.items(0, 40) if isinstance(u, Unit)]
    style_of = row_style_function(RULES)
    return [unit_row(unit, style_of) for unit in units]


def test_the_first_rule_that_matches_tints_marks_and_names_a_row() -> None:
    kind = unit_kind(lambda *_: None, RowMarkings(), rules=True)
    names = [column.key for column in kind.columns]
    for row in rows():
        paid = row.topic == "OrderPaid"
        assert (row.rule, row.tint) == (("Paid", "green") if paid else ("Rest", "blue"))
        look = kind.look(row)
        assert look is not None
        assert (look.mark, look.fill) == (("rule.green", "okFill") if paid else ("rule.blue", "noteFill"))
        assert kind.columns[names.index("rule")].text(row) == row.rule
        assert row.rule in kind.verdict(row)


def test_saved_rules_are_read_without_damaged_ones() -> None:
    assert read(kept(RULES)) == RULES
    assert read([{"name": "x"}, {"name": "x", "text": "y", "tint": "pink"}]) == []
    assert row_style_function([Rule("bad", "sise > 3"), Rule("off", "size > 3", on=False)]) is None
    assert "sise" in Rule("bad", "sise > 3").fault
    assert Rule("empty", " ").fault


def test_users_marks_are_shown_and_problems_keep_their_mark() -> None:
    markings = RowMarkings()
    row = rows()[0]
    markings.marked.add(row.offset)
    assert markings.style(row, None).mark == "mark"
    assert markings.style(row, RowAppearance(mark="error")).mark == "error"
    markings.ignored.add(row.offset)
    assert markings.style(row, None).tone == "text3"
    assert markings.verdict(row, "CRC ok").startswith("CRC ok, marked, ignored")
    markings.clear()
    markings.reference = (row.offset, row.store_timestamp - 225)
    assert markings.time(row) == "+0.225"
    assert markings.style(row, None).mark == "clock"


def test_differences_of_time() -> None:
    assert [time_difference(ms) for ms in (0, -12_345, 62_345, 3_723_456)] == [
        "+0.000",
        "−12.345",
        "+1:02.345",
        "+1:02:03.456",
    ]


ALL = RowMarks(frozenset({0, 1 << 40}), frozenset({7}), (7, 1_700_000_000_000))


def test_marks_are_saved_and_loaded(tmp_path: Path) -> None:
    store = tmp_path / "store"
    file = marks_file(tmp_path / "config", store)
    assert read_marks(file) == RowMarks()
    write_marks(file, store, ALL)
    assert read_marks(file) == ALL
    assert [item.name for item in file.parent.iterdir()] == [file.name]
    assert file != marks_file(tmp_path / "config", tmp_path / "other")


def test_the_file_is_deleted_with_the_last_mark(tmp_path: Path) -> None:
    file = marks_file(tmp_path, tmp_path / "store")
    write_marks(file, tmp_path / "store", RowMarks())
    write_marks(file, tmp_path / "store", ALL)
    write_marks(file, tmp_path / "store", RowMarks())
    assert not file.exists()


@pytest.mark.parametrize(
    "text", ["", "[]", '{"marked": 7}', '{"marked": ["a", -5, true, 1.5], "reference": [4], "ignored": {}}']
)
def test_a_broken_file_has_no_marks(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text, "utf-8")
    assert read_marks(file) == RowMarks()
