"""Cells become conditions that find the unit they speak of, and conditions join as they say."""

from __future__ import annotations

import pytest

from engine.codec.message import Unit
from engine.inspection import open_store
from engine.inspection.samples import sample
from engine.query import parse
from viewer.log.columns import unit_kind
from viewer.log.rows import letters, unit_row
from viewer.widgets.cell_filter import LETTERS, body_term, cell_term, combined, letters_term, line_term
from viewer.widgets.columns import number_column, text_column


@pytest.fixture(scope="module")
def units() -> list[Unit]:
    with open_store(sample("orders")) as store:
        return [item for item in store.log.walk() if isinstance(item, Unit)][:1500]


def test_every_cell_of_the_log_finds_its_own_unit(units: list[Unit]) -> None:
    columns = unit_kind(lambda *_: None).columns
    request = 0
    for unit in units[::97]:
        for column in columns:
            term = cell_term("unit", column, unit_row(unit))
            if term is not None:
                request += 1
                assert parse(term).matches(unit), (column.key, term)
    assert request > 100


def test_marks_say_the_same_as_their_conditions(units: list[Unit]) -> None:
    for letter, condition in LETTERS.items():
        expected = parse(condition)
        assert [letter in letters(u) for u in units] == [expected.matches(u) for u in units], letter
    assert letters_term("") is None
    assert letters_term("ZR") == f"compressed and {LETTERS['R']}"


def test_fields_of_the_decoded_unit_become_conditions(units: list[Unit]) -> None:
    unit = units[3]
    for name in (
        "totalSize",
        "topic",
        "queueId",
        "bornTimestamp",
        "storeHost",
        "bodyCRC",
        "sysFlag",
        "properties.KEYS",
    ):
        term = line_term(name, "as it is shown", unit)
        assert term is not None, name
        assert parse(term).matches(unit), term
    assert line_term("body", "…", unit) is None
    assert line_term("topicLength", "9", unit) is None
    assert line_term("queueId", "9", None) is None


def test_cells_of_other_tables_lead_to_their_unit() -> None:
    record = {"topic": "A", "queueId": 2, "queueOffset": 7, "phyOffset": 99, "hash": 5}
    assert cell_term("cq", number_column("queueOffset", "", 9), record) == (
        'topic = "A" and queueId = 2 and queueOffset = 7'
    )
    assert cell_term("cq", number_column("queueId", "", 9), record) == 'topic = "A" and queueId = 2'
    assert cell_term("step", number_column("phyOffset", "", 9), record) == "physicalOffset = 99"
    assert cell_term("step", number_column("hash", "", 9), record) is None
    assert cell_term("cq", text_column("tags", "", 9), record) is None


@pytest.mark.parametrize(
    ("how", "whole"),
    [
        ("only", "size = 3"),
        ("not", "not size = 3"),
        ("and", "(flag = 1 or flag = 2) and size = 3"),
        ("andNot", "(flag = 1 or flag = 2) and not size = 3"),
        ("or", "flag = 1 or flag = 2 or size = 3"),
        ("prepare", "(flag = 1 or flag = 2) and size = 3"),
    ],
)
def test_conditions_join(how: str, whole: str) -> None:
    assert combined("flag = 1 or flag = 2", how, "size = 3") == whole
    assert combined("", "prepare", "size = 3") == "size = 3"


def test_a_body_that_is_no_text_makes_no_condition() -> None:
    assert body_term(b"\xff\xfe\x00\x80" * 9) is None
    assert body_term(b"") is None
    assert body_term('{"a":"数量"}'.encode()[:8]) == 'body startswith "{\\"a\\":\\""'
