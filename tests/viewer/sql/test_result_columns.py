"""Columns of an answer, and the places to which their cells lead."""

from __future__ import annotations

import pytest

from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.sql.answers import Answer, Question, ResultColumn, SqlRow
from viewer.sql.result_columns import meaning_of, result_kind
from viewer.widgets.row_commands import facts_of


def answer_of(*columns: tuple[str, str], text: str = "SELECT 1") -> Answer:
    made = tuple(ResultColumn(name, kind) for name, kind in columns)  # type: ignore[arg-type]
    return Answer(Question(text), made, 0, (), None, (), False, True, 0.0, 0, 0)


def row_of(answer: Answer, *values: object) -> SqlRow:
    return SqlRow(0, tuple(column.name for column in answer.columns), values)


@pytest.mark.parametrize(
    ("columns", "values", "expected"),
    [
        ({"physicalOffset": "integer"}, (640,), places.log(640)),
        ({"phyOffset": "integer"}, (640,), places.log(640)),
        ({"min(physicalOffset)": "integer"}, (640,), places.log(640)),
        ({"physicalOffset_2": "integer"}, (640,), places.log(640)),
        ({"physicalOffset": "integer"}, (-1,), None),
        ({"physicalOffset": "integer"}, (None,), None),
        ({"physicalOffset": "text"}, ("640",), None),
        ({"queueOffset": "integer", "topic": "text", "queueId": "integer"}, (5, "T", 2), places.queue("T", 2, 5)),
        ({"queueOffset": "integer"}, (5,), None),
        ({"topic": "text"}, ("T",), places.queue("T")),
        ({"entry": "integer", "file": "text", "keyHash": "integer"}, (7, "F", 1), places.index("F", "entry", 7)),
        ({"slot": "integer", "file": "text"}, (7, "F"), places.index("F", "slot", 7)),
        ({"consumerGroup": "text"}, ("billing",), Place("groups", name="billing")),
        ({"id": "text", "severity": "text"}, ("CL01", "error"), Place("findings", name="CL01")),
        ({"id": "text"}, ("CL01",), None),
    ],
)
def test_a_cell_leads_to_its_place(columns, values, expected) -> None:
    answer = answer_of(*columns.items())
    column = result_kind(answer).columns[0]
    place = column.jump(row_of(answer, *values)) if column.jump is not None else None
    assert place == expected


def test_values_are_shown_like_those_of_other_tables() -> None:
    answer = answer_of(
        ("n", "integer"), ("part", "number"), ("time", "time"), ("yes", "boolean"), ("body", "bytes"), ("keys", "list")
    )
    kind = result_kind(answer)
    row = row_of(answer, 1_000_000, 0.123456789, 1_795_167_667_225_000, True, b"\x01\xff", ["a", "b"])
    texts = [column.text(row) for column in kind.columns]
    assert texts[:2] == ["1,000,000", "0.123457"]
    assert texts[2].endswith("41:07.225")
    assert texts[3:] == ["true", "01 ff", '["a", "b"]']
    assert [column.text(row_of(answer, *[None] * 6)) for column in kind.columns] == [""] * 6


def test_a_row_is_copied_as_the_command_prints_it() -> None:
    answer = answer_of(("n", "integer"), ("time", "time"), text="SELECT n, time FROM units")
    kind = result_kind(answer)
    row = row_of(answer, 7, 0)
    assert kind.as_record(row) == {"n": 7, "time": "1970-01-01T00:00:00+00:00"}
    assert kind.command is not None
    assert kind.command(row) == ["storescope", "sql", "STORE", "SELECT n, time FROM units"]


def test_a_row_of_a_message_has_the_menu_of_a_message() -> None:
    answer = answer_of(
        ("topic", "text"), ("queueId", "integer"), ("queueOffset", "integer"), ("physicalOffset", "integer")
    )
    kind = result_kind(answer)
    facts = facts_of(kind, row_of(answer, "T", 2, 5, 640), kind.columns[0])
    assert (facts.topic, facts.queue_id, facts.queue_offset, facts.offset) == ("T", 2, 5, 640)


def test_names_of_columns_say_what_they_mean() -> None:
    assert meaning_of("max(u.physicalOffset)") == meaning_of('first("physicalOffset")') == "physicalOffset"
    assert meaning_of("sum(physicalOffset)") == "sum(physicalOffset)"
    assert meaning_of("2_3") == "2_3"
